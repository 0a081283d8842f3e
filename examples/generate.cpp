// Continues a text with any model the zoo knows.
#include <cstdio>
#include <functional>
#include <iostream>
#include <tenon/cost/read_bandwidth.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/quant/named_formats.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/registry.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "command_line.hpp"

namespace {

bool stderr_is_terminal() {
#if defined(__unix__) || defined(__APPLE__)
  return ::isatty(STDERR_FILENO) == 1;
#else
  return false;
#endif
}

struct Options {
  std::string model, prompt = "Once upon a time", cache = "f16", quantize;
  int max_tokens = 200, threads = 0, context = 0;
  tenon::SamplingOptions sampling;
  bool ids = false, stats = false, verify = false;
};

constexpr int longest_default_context = 4096;

// Bytes the model reads for every token of one sequence: its weights and the rows in use.
void print_stats(const tenon::AnyModel& model, const tenon::AnySession& session,
                 const tenon::Limits& limits, const tenon::Generation& result,
                 tenon::Executor& team) {
  const tenon::Timings& t = result.timings;
  const auto decoded = static_cast<double>(result.ids.size()) - 1;
  const double rate = decoded > 0 && t.decode_seconds > 0 ? decoded / t.decode_seconds : 0;
  const double rows = t.prompt_tokens + decoded / 2;
  const double bytes = static_cast<double>(model.step_bytes()) +
                       static_cast<double>(session.cache_bytes()) * rows / limits.context;
  const double bound = tenon::read_bandwidth(static_cast<std::size_t>(bytes), team, session.isa());
  std::fprintf(
      stderr,
      "prompt   %d tokens, %.1f tokens/s, first token after %.2f ms\n"
      "decode   %zu tokens, %.1f tokens/s\n"
      "memory   weights %zu bytes, cache %zu bytes, scratch %zu bytes\n"
      "bound    %.2f GB/s of %.2f GB/s read bandwidth for %.1f MB, %.0f %%  (%d threads, %s)\n",
      t.prompt_tokens, t.prompt_seconds > 0 ? t.prompt_tokens / t.prompt_seconds : 0,
      t.first_token_seconds * 1e3, result.ids.size(), rate, model.bytes(), session.cache_bytes(),
      session.workspace_bytes(), rate * bytes / 1e9, bound / 1e9, bytes / 1e6,
      100 * rate * bytes / bound, team.threads(), std::string(name_of(session.isa())).c_str());
}

// A line on the terminal while a large model is read, gone when that is done. Empty when nobody
// would see it or it would be over at once.
std::function<bool(std::size_t, std::size_t)> progress_line(const tenon::TensorSource& file) {
  constexpr std::size_t worth_showing = 200'000'000;
  std::size_t bytes = 0;
  for (const tenon::TensorInfo& tensor : file.tensors()) bytes += tensor.data.size();
  if (bytes < worth_showing || !stderr_is_terminal()) return {};
  return [shown = -1](std::size_t done, std::size_t total) mutable {
    const int percent =
        static_cast<int>(static_cast<double>(done) / static_cast<double>(total) * 100);
    if (percent == shown) return true;
    shown = percent;
    if (done < total) {
      std::fprintf(stderr, "\rloading %d %%", percent);
    } else {
      std::fprintf(stderr, "\r%*s\r", 13, "");
    }
    std::fflush(stderr);
    return true;
  };
}

void generate(const Options& o) {
  o.sampling.check();
  tenon::ThreadTeam team(o.threads);
  const auto checkpoint = tenon::open_checkpoint(o.model);
  const tenon::TensorSource& file = *checkpoint;
  const auto tokenizer = tenon::Tokenizer::from(file);
  tenon::BindOptions binding{.progress = progress_line(file), .verify = o.verify};
  if (!o.quantize.empty()) binding.quantize = &tenon::find_weight_format(o.quantize);
  const auto model = tenon::zoo::All::load(file, team, binding);
  const int trained =
      model.trained_context() > 0 ? model.trained_context() : longest_default_context;
  tenon::Limits limits;
  limits.context = o.context != 0 ? o.context : (std::min)(trained, longest_default_context);
  limits.step_tokens = (std::min)(limits.context, 256);
  const std::size_t given = tokenizer.encode(o.prompt).size();
  if (given > static_cast<std::size_t>(limits.context)) {
    tenon::fail<tenon::CapacityError>("the prompt must fit the context of ", limits.context,
                                      " tokens, it has ", given, "; give --ctx ", given,
                                      " or more, or a shorter --prompt");
  }
  auto session = model.open(limits, {.cache = o.cache, .executor = &team});

  tenon::TextOptions options;
  options.generate.max_tokens = o.max_tokens;
  options.generate.sampling = o.sampling;
  bool begun = o.ids;
  const auto begin = [&] {
    if (!begun) std::cout << o.prompt;
    begun = true;
  };
  const auto result =
      generate_text(session, tokenizer, o.prompt, options, [&](std::string_view piece) {
        begin();
        if (!o.ids) std::cout << piece << std::flush;
        return static_cast<bool>(std::cout);
      });
  begin();
  for (std::size_t i = 0; o.ids && i < result.tokens.ids.size(); ++i) {
    std::cout << (i > 0 ? "," : "") << result.tokens.ids[i];
  }
  std::cout << '\n';
  if (o.stats) print_stats(model, session, limits, result.tokens, team);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Continues a text with a language model.", "generate");
  app.add_option("MODEL", o.model, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("--prompt", o.prompt, "the text to continue [Once upon a time]");
  app.add_option("--max-tokens", o.max_tokens, "tokens to generate at most")->capture_default_str();
  add_sampling(app, o.sampling);
  app.add_option("--threads", o.threads, "0: as many as this process may use")
      ->capture_default_str();
  app.add_option("--ctx", o.context,
                 "tokens of context; 0: what the model was trained for, up to 4096")
      ->check(from_to(0, most_context))
      ->capture_default_str();
  app.add_option("--cache", o.cache,
                 "format of cached rows (f32, f16, bf16, q8_0, q4_0, fp8_e4m3, fp8_e5m2), or of "
                 "keys/values")
      ->capture_default_str();
  app.add_option(
      "--quantize", o.quantize,
      "encode matrices in this format while loading, one of " + tenon::weight_format_names());
  app.add_flag("--ids", o.ids, "print the generated token ids instead of text");
  app.add_flag("--verify", o.verify, "check that the weights of a packed file are as written");
  app.add_flag("--stats", o.stats, "print speed and memory on stderr");
  return run_program(app, argc, argv, [&] { generate(o); });
}
