// What a model thinks of a text: logits of every position, or its perplexity.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/npy.hpp>
#include <tenon/io/replace_file.hpp>
#include <tenon/quant/named_formats.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/registry.hpp>

#include "command_line.hpp"
#include "token_list.hpp"

namespace {

struct Options {
  std::string model, tokens, text_file, logits, cache = "f32", activations = "int8", quantize;
  int threads = 0, chunk = 0, window = 255;
  bool perplexity = false;
};

std::string read_text(const std::string& path) {
  const tenon::MappedFile file(path);
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A bar on a terminal, nothing elsewhere.
class Progress {
 public:
  explicit Progress(tenon::Dim total) : total_(total), shown_(::isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void at(tenon::Dim done) {
    const int percent = static_cast<int>(100 * done / total_);
    if (!shown_ || percent == last_) return;
    last_ = percent;
    std::fprintf(stderr, "\r[%-50s] %3d %%",
                 std::string(static_cast<std::size_t>(percent / 2), '#').c_str(), percent);
  }

 private:
  tenon::Dim total_;
  bool shown_;
  int last_ = -1;
};

void score(const Options& o) {
  if (o.tokens.empty() == o.text_file.empty()) {
    tenon::fail<tenon::RequestError>(
        "what to score must be given by one of --tokens and --text-file, ",
        o.tokens.empty() ? "none" : "both", " of them is there");
  }
  if (o.logits.empty() && !o.perplexity) {
    tenon::fail<tenon::RequestError>(
        "what to compute must be given by --logits or --perplexity, none is there");
  }
  const tenon::Activations activations = activations_named(o.activations);
  constexpr int longest_window = 1 << 20;
  if (o.window < 1 || o.window > longest_window) {
    tenon::fail<tenon::RequestError>("--window must be at least 1 and at most ", longest_window,
                                     ", it is ", o.window);
  }
  tenon::ThreadTeam team(o.threads);
  const auto file = tenon::open_checkpoint(o.model);
  if (!o.logits.empty()) tenon::check_replaceable(o.logits);
  const auto tokenizer = tenon::Tokenizer::from(*file);
  tenon::BindOptions binding;
  if (!o.quantize.empty()) binding.quantize = &tenon::find_weight_format(o.quantize);
  const auto model = tenon::zoo::All::load(*file, team, binding);
  // Of a text, logits are those of its start token and ids; perplexity puts one before each window.
  const std::vector<tenon::Token> ids =
      o.tokens.empty() ? tokenizer.encode(read_text(o.text_file), {.bos = false, .eos = false})
                       : token_list(o.tokens);
  std::vector<tenon::Token> fed = ids;
  if (o.tokens.empty() && tokenizer.bos()) fed.insert(fed.begin(), *tokenizer.bos());
  tenon::Limits limits;
  limits.context = o.window + 1;
  if (!o.logits.empty()) limits.context = (std::max)(limits.context, static_cast<int>(fed.size()));
  limits.step_tokens = o.chunk > 0 ? o.chunk : (std::min)(limits.context, 256);
  auto session =
      model.open(limits, {.cache = o.cache, .activations = activations, .executor = &team});
  Progress progress(static_cast<tenon::Dim>(fed.size()));
  if (!o.logits.empty()) {
    std::vector<float> rows;
    rows.reserve(fed.size() * static_cast<std::size_t>(model.vocab()));
    tenon::score(session, fed, o.chunk, [&](tenon::Dim i, std::span<const float> row) {
      if (std::any_of(row.begin(), row.end(), [](float x) { return !std::isfinite(x); })) {
        tenon::fail<tenon::LoadError>(o.model, ": logits must be finite, those after token ", i,
                                      " are not; the weights are damaged");
      }
      rows.insert(rows.end(), row.begin(), row.end());
      progress.at(i);
    });
    tenon::write_npy(o.logits,
                     tenon::matrix<const float>(rows.data(), static_cast<tenon::Dim>(ids.size()),
                                                model.vocab()));
  }
  if (o.perplexity) {
    const auto nll = tenon::negative_log_likelihood(
        session, ids, {.window = o.window, .bos = tokenizer.bos(), .chunk = o.chunk},
        [&](tenon::Dim i, double) { progress.at(i); });
    std::printf("tokens %lld  nll %.6f nats/token  perplexity %.6f\n",
                static_cast<long long>(nll.tokens), nll.mean(), nll.perplexity());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Scores a text with a language model.", "score");
  app.add_option("MODEL", o.model, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("--tokens", o.tokens, "the ids to score, separated by commas");
  app.add_option("--text-file", o.text_file, "a file with the text to score");
  app.add_option("--logits", o.logits, "write float32 logits [tokens, vocab] to this .npy file");
  app.add_flag("--perplexity", o.perplexity,
               "print the mean negative log-likelihood and the perplexity");
  app.add_option("--window", o.window,
                 "tokens of one perplexity window, each evaluated after a start token")
      ->capture_default_str();
  app.add_option("--threads", o.threads, "0: as many as this process may use")
      ->capture_default_str();
  app.add_option("--chunk", o.chunk, "tokens fed at a time; 0: up to 256. Changes no result")
      ->check(from_to(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--cache", o.cache,
                 "format of cached rows (f32, f16, bf16, q8_0, q4_0, fp8_e4m3, fp8_e5m2), or of "
                 "keys/values")
      ->capture_default_str();
  app.add_option("--activations", o.activations,
                 "with block-quantized weights: int8 or f32 (exact)")
      ->capture_default_str();
  app.add_option(
      "--quantize", o.quantize,
      "encode matrices in this format while loading, one of " + tenon::weight_format_names());
  return run_program(app, argc, argv, [&] { score(o); });
}
