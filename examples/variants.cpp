// Attention variants side by side: what each caches, how well it predicts a text, how fast it goes.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <tenon/io/checkpoint.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/registry.hpp>

#include "command_line.hpp"
#include "svg_chart.hpp"

using namespace tenon;

namespace {

struct Options {
  std::string directory, text, svg;
  int runs = 5, tokens = 200;
};
struct CacheSize {
  std::size_t per_token = 0, fixed = 0;  // bytes
};

// What papers count, for 16-bit rows: 2 x kv_heads x head_dim values per token and layer, of MLA
// kv_rank + rope_dim; only in layers that own their rows, and in those with a window no more than
// `window` times.
CacheSize formula(const TensorSource& file) {
  const ConfigStorage storage(file);
  const ModelConfig config = storage.view();
  const bool latent = config.has("attention.kv_lora_rank");
  const auto size = [&](const char* key) { return static_cast<std::size_t>(config.size(key)); };
  CacheSize out;
  for (int layer = 0; layer < config.layers(); ++layer) {
    if (config.number_or("attention.kv_source", layer, layer) != layer) continue;
    const bool windowed = config.has("attention.sliding_window_pattern") &&
                          config.number_or_flag("attention.sliding_window_pattern", layer) != 0;
    const std::size_t head_dim = config.has("attention.key_length")
                                     ? size("attention.key_length")
                                     : size("embedding_length") / size("attention.head_count");
    const std::size_t values = latent
                                   ? size("attention.kv_lora_rank") + size("rope.dimension_count")
                                   : 2 * size("attention.head_count_kv") * head_dim;
    (windowed ? out.fixed : out.per_token) +=
        2 * values * (windowed ? size("attention.sliding_window") : 1);
  }
  return out;
}

// What sessions hold, from two contexts; in steps of one token, so that a ring is its window.
CacheSize measured(const AnyModel& model, Executor& executor) {
  const auto bytes = [&](int context) {
    return model
        .open({.context = context, .step_tokens = 1}, {.cache = "f16", .executor = &executor})
        .cache_bytes();
  };
  const std::size_t per_token = (bytes(1024) - bytes(512)) / 512;
  return {per_token, bytes(512) - 512 * per_token};
}

// Greedy tokens per second after a prompt of BOS, the median of the runs.
double decode_rate(const AnyModel& model, Token bos, const Options& o, Executor& executor) {
  auto session = model.open({.context = o.tokens}, {.cache = "f16", .executor = &executor});
  std::vector<double> rates;
  for (int run = 0; run < o.runs; ++run) {
    const Generation made = generate(session, {&bos, 1}, {.max_tokens = o.tokens});
    rates.push_back((o.tokens - 1) / made.timings.decode_seconds);
  }
  std::nth_element(rates.begin(), rates.begin() + o.runs / 2, rates.end());
  return rates[static_cast<std::size_t>(o.runs / 2)];
}

void compare(const Options& o) {
  struct Variant {
    const char *file, *attention;
  };
  const MappedFile text(o.text);
  const std::string_view read(reinterpret_cast<const char*>(text.bytes().data()),
                              text.bytes().size());
  SerialExecutor serial;
  std::vector<ChartPoint> points;
  std::puts(
      "cache: bytes per token + fixed bytes, of a session and by the formula\n"
      "model       attention     parameters  perplexity         cache       formula  tokens/s");
  for (const Variant& v : {Variant{"story-mha", "MHA"}, Variant{"story-gqa", "GQA"},
                           Variant{"story-mla", "MLA"}, Variant{"story-cla", "CLA + local"}}) {
    const std::string path = o.directory + "/" + v.file + ".gguf";
    if (!std::filesystem::exists(path)) {
      std::cerr << "variants: " << path << " is missing; going on without it\n";
      continue;
    }
    const auto checkpoint = open_checkpoint(path);
    const TensorSource& file = *checkpoint;
    Dim parameters = 0;
    for (const TensorInfo& tensor : file.tensors()) {
      Dim values = 1;
      for (const Dim extent : tensor.shape) values *= extent;
      parameters += values;
    }
    const auto tokenizer = Tokenizer::from(file);
    const auto model = zoo::All::load(file, serial);
    auto session = model.open({.context = 256}, {.cache = "f16", .executor = &serial});
    const NllSum nll =
        negative_log_likelihood(session, tokenizer.encode(read, {.bos = false, .eos = false}),
                                {.window = 255, .bos = tokenizer.bos()});
    const CacheSize cache = measured(model, serial);
    const auto bytes = [](const CacheSize& c) { return message(c.per_token, " + ", c.fixed); };
    std::printf("%-11s %-12s %11lld %11.4f %13s %13s %9.0f\n", v.file, v.attention,
                static_cast<long long>(parameters), nll.perplexity(), bytes(cache).c_str(),
                bytes(formula(file)).c_str(),
                decode_rate(model, tokenizer.bos().value_or(0), o, serial));
    points.push_back({v.attention,
                      static_cast<double>(cache.per_token) + static_cast<double>(cache.fixed) / 512,
                      nll.perplexity()});
  }
  if (points.empty()) {
    fail<LoadError>(o.directory, ": must hold story-*.gguf files, none was found; check the path");
  }
  if (o.svg.empty()) return;
  std::ofstream svg(o.svg);
  svg << svg_chart({"Attention variants: memory against quality",
                    "cache bytes per token, 16 bits, of a sequence of 512 tokens",
                    "perplexity on held-out stories"},
                   points);
  if (!svg.flush()) fail<RequestError>(o.svg, ": must be a file that can be written, it is not");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Compares trained story models that differ in their attention. Perplexity: windows of 255 "
      "ids, "
      "each after BOS from an empty cache. Cache: 16-bit rows, as sessions count them and by the "
      "papers' formula. Speed: greedy tokens per second, one thread, median.",
      "variants");
  app.add_option("DIR", o.directory, "the folder of story-mha.gguf and the others")->required();
  app.add_option("TEXT", o.text, "a file with held-out stories")->required();
  app.add_option("--svg", o.svg, "write a chart of cache bytes against perplexity to this file");
  app.add_option("--runs", o.runs, "decoding runs, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--tokens", o.tokens, "tokens of each of these runs")
      ->check(CLI::Range(2, 500))
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { compare(o); });
}
