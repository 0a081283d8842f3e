// One decode step of a whole model over a long context, in turns with reading as many bytes as its
// weights and rows have.
//   bench_synth deep-64.gguf --shape deep-64 --format f16 && bench_long_context deep-64.gguf
#include <cstdio>
#include <optional>

#include "../examples/command_line.hpp"
#include "reader.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/core/thread_team.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/zoo/llama.hpp"

namespace {

using namespace tenon;

struct Options {
  std::string file;
  int threads = 1, context = 4096, rounds = 15;
};

// All caches are held against the same block, made for the first: where in memory a block lies
// changes how fast it is read, by some percent.
template <class Cache>
void measure(const Options& options, const char* layout, std::optional<bench::Reader>& reader,
             ThreadTeam& team) {
  const auto model = zoo::Llama<Cache, AnyOf<F32, F16, Q8_0, Q4_0>>::bind(Gguf::open(options.file));
  const Limits limits{.seqs = 1, .context = options.context, .step_tokens = 64};
  auto session = model.open(limits, {.executor = &team});
  const SeqId seq = session.open();
  std::vector<float> logits(static_cast<std::size_t>(model.vocab()));
  const std::vector<Token> tokens(64, 300);
  const auto forward = [&](int count) {
    const int last = count - 1;
    session.forward({.seqs = {&seq, 1},
                     .counts = {&count, 1},
                     .tokens = std::span(tokens).first(static_cast<std::size_t>(count)),
                     .positions = {},
                     .parents = {},
                     .want = {&last, 1}},
                    matrix(logits.data(), 1, model.vocab()));
  };
  const int before = options.context - 1;
  while (session.length(seq) < before) forward((std::min)(64, before - session.length(seq)));
  const std::size_t bytes = model.step_bytes() + session.cache_bytes();
  if (!reader) reader.emplace(bytes, team);
  const bench::Turns turns = bench::in_turns(
      *reader, bytes, options.rounds, [&] { forward(1); }, [&] { session.truncate(seq, before); });
  const auto megabytes = [](std::size_t n) { return static_cast<double>(n) * 0x1p-20; };
  std::printf(
      "%-10s context %5d weights %.0f MB rows %.0f MB  %.2f ms of %.2f, best %.2f of %.2f  time / "
      "bound %.2f\n",
      layout, options.context, megabytes(model.step_bytes()), megabytes(session.cache_bytes()),
      bench::median(turns.worked) * 1e3, bench::median(turns.read) * 1e3,
      bench::least(turns.worked) * 1e3, bench::least(turns.read) * 1e3, bench::median(turns.ratio));
}

void run(const Options& options) {
  ThreadTeam team(options.threads);
  std::optional<bench::Reader> reader;
  measure<Contiguous<F16>>(options, "contiguous", reader, team);
  measure<Paged<F16, 16>>(options, "paged 16", reader, team);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("One decode step over a long context against the memory's speed.",
               "bench_long_context");
  app.add_option("FILE", options.file, "a Llama checkpoint")->required();
  app.add_option("--threads", options.threads, "threads")->capture_default_str();
  app.add_option("--context", options.context, "rows of the sequence")->capture_default_str();
  app.add_option("--rounds", options.rounds, "steps")->capture_default_str();
  return run_program(app, argc, argv, [&] { run(options); });
}
