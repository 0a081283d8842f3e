// What attention of one decode step costs over long contexts, against reading the same bytes: every
// line is measured in rounds of one pass over the rows and one pass over as large a block of
// memory, and prints medians over the rounds.
//   bench_attention --threads 1 --context 4096 --only 8x64
#include <cstdio>
#include <memory>
#include <random>

#include "../examples/command_line.hpp"
#include "reader.hpp"
#include "tenon/attn/attend.hpp"
#include "tenon/attn/masks.hpp"
#include "tenon/attn/score_hooks.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/cache/ring.hpp"
#include "tenon/core/thread_team.hpp"

namespace {

using namespace tenon;
using Formats = AnyOf<F32, F16, Bf16, Q8_0>;

struct Options {
  int threads = 1, context = 4096, rounds = 9, megabytes = 256;
  std::string only;
};
struct Heads {
  Dim kv_heads, group, dim;
};

template <class Cache, class M>
void measure(const Options& options, Executor& team, const char* layout, const Heads& heads,
             int tag, const M& mask) {
  std::string_view format = FormatList<Formats>::visit(tag, []<class F>(F) { return F::name; });
  const std::string name =
      message(heads.kv_heads, "x", heads.dim, " group ", heads.group, " ", format, " ", layout);
  if (name.find(options.only) == std::string::npos) return;
  const Dim width = heads.kv_heads * heads.dim;
  const int context = options.context;
  int seen = context, reach = 0;
  if constexpr (M::bounded) seen = (std::min)(context, reach = mask.rows_back());
  const std::size_t row = plane_row_bytes<Formats>(width, tag);
  const std::size_t layer = 2 * row * static_cast<std::size_t>(seen);
  const auto layers = static_cast<int>(
      (std::max)(std::size_t{2}, (static_cast<std::size_t>(options.megabytes) << 20) / layer));
  const std::vector<RowSpec> slots(static_cast<std::size_t>(layers),
                                   RowSpec{{width, width}, reach});
  const Limits limits{.seqs = 1, .context = context, .step_tokens = 1};
  Cache cache(slots, limits, {tag, tag});
  std::vector<float> values(static_cast<std::size_t>(width));
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<std::vector<std::byte>> rows(61, std::vector<std::byte>(row));
  for (auto& bytes : rows) {
    for (float& v : values) v = normal(generator);
    FormatList<Formats>::visit(
        tag, [&]<class F>(F) { encode_row<F>(values.data(), width, bytes.data()); });
  }
  for (int r = 0; r < context; ++r) cache.reserve(SeqId{0}, r, 1);
  for (int slot = 0; slot < layers; ++slot) {
    for (int plane = 0; plane < 2; ++plane) {
      for (int r = context - seen; r < context; ++r) {
        std::memcpy(cache.row(SeqId{0}, slot, plane, r),
                    rows[static_cast<std::size_t>(r * 2 + plane) % rows.size()].data(), row);
      }
    }
  }
  const AttentionShape shape{heads.kv_heads * heads.group, heads.kv_heads, heads.dim, heads.dim, 1};
  std::vector<float> queries(static_cast<std::size_t>(shape.heads * heads.dim));
  for (float& v : queries) v = normal(generator);
  std::vector<float> out(queries.size());
  const SeqStep seq{SeqId{0}, 0, 1, context - 1};
  const Step step{{&seq, 1}, {}, 1};
  const auto pass = [&](Workspace& work, int count) {
    Cpu cpu(choose_isa(), Activations::f32, team, work);
    for (int slot = 0; slot < count; ++slot) {
      attend(cpu, cache, slot, step, matrix(queries.data(), 1, shape.heads * heads.dim),
             matrix(out.data(), 1, shape.heads * heads.dim), shape, 0.125f, mask, PlainScore{});
    }
  };
  Workspace sizes;
  pass(sizes, 1);
  Workspace work(sizes.peak());
  const std::size_t bytes = layer * static_cast<std::size_t>(layers);
  bench::Reader reader(bytes, team);
  const bench::Turns turns = bench::in_turns(
      reader, bytes, options.rounds, [&] { pass(work, layers); }, [] {});
  const double size = static_cast<double>(bytes);
  std::printf(
      "%-34s %6d %7.1f MB %7.1f us/layer %6.2f GB/s of %6.2f  best %6.2f of %6.2f  time / bound "
      "%5.2f\n",
      name.c_str(), context, size * 0x1p-20, bench::median(turns.worked) / layers * 1e6,
      size / bench::median(turns.worked) * 1e-9, size / bench::median(turns.read) * 1e-9,
      size / bench::least(turns.worked) * 1e-9, size / bench::least(turns.read) * 1e-9,
      bench::median(turns.ratio));
  std::fflush(stdout);
}

void run(const Options& options) {
  ThreadTeam team(options.threads);
  const int f16 = tag_of_name<Formats>("f16");
  for (const Heads& heads :
       {Heads{8, 4, 64}, Heads{8, 4, 128}, Heads{2, 8, 64}, Heads{32, 1, 64}}) {
    measure<Contiguous<Formats>>(options, team, "contiguous", heads, f16, Causal{});
  }
  for (const Dim group : {1, 8}) {
    measure<Contiguous<Formats>>(options, team, "contiguous", {8, group, 64}, f16, Causal{});
  }
  for (int tag = 0; tag < 4; ++tag) {
    if (tag == f16) continue;
    measure<Contiguous<Formats>>(options, team, "contiguous", {8, 4, 128}, tag, Causal{});
  }
  measure<Paged<Formats, 16>>(options, team, "paged 16", {8, 4, 64}, f16, Causal{});
  measure<Paged<Formats, 64>>(options, team, "paged 64", {8, 4, 64}, f16, Causal{});
  measure<Ring<Formats>>(options, team, "ring 1000", {8, 4, 64}, f16, SlidingWindow{1000, 0});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Attention of one decode step against the memory's speed.", "bench_attention");
  app.add_option("--threads", options.threads, "threads")->capture_default_str();
  app.add_option("--context", options.context, "rows of the sequence")->capture_default_str();
  app.add_option("--rounds", options.rounds, "measurements of each line")->capture_default_str();
  app.add_option("--megabytes", options.megabytes, "of rows, in as many layers as it takes")
      ->capture_default_str();
  app.add_option("--only", options.only, "lines whose name has this in it");
  return run_program(app, argc, argv, [&] { run(options); });
}
