#pragma once
// One of the trained story models against its expected values: ids of its prompts, logits, greedy
// ids, and the likelihood of held-out text.
#include "golden/reference.hpp"
#include "tenon/decode/score.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/model/any_model.hpp"
#include "tenon/text/tokenizer.hpp"

namespace golden {

// Loads models/trained/NAME.gguf with `load(source)`.
template <class Load>
void check_trained(const std::string& name, Load&& load) {
  const auto file = shared_file("models/trained/" + name + ".gguf");
  if (file.empty()) return;
  const tenon::Gguf gguf = tenon::Gguf::open(file);
  const tenon::AnyModel model(load(gguf));
  const tenon::Tokenizer tokenizer = tenon::Tokenizer::from(gguf.metadata());
  const auto folder = file.parent_path() / name;
  const auto expected = reference::json_file(folder / "expected.json");
  const tenon::Limits limits{.seqs = 1, .context = 512, .step_tokens = 256};
  auto session =
      model.open(limits, {.cache = "f32", .activations = tenon::Activations::f32, .threads = 1});

  const std::vector<tenon::Token> ids = expected.at("logits").at("ids");
  const double worst = reference::largest_difference(reference::logits(session, ids, 64),
                                                     reference::npy(folder / "logits.npy"));
  INFO(name << ": largest difference " << worst);
  // Files of F16 matrices round the reference's bfloat16: exact but for subnormal weights.
  CHECK(worst <= 2e-4);
  for (const auto& run : expected.at("greedy")) {
    const std::vector<tenon::Token> prompt = run.at("prompt_ids"), want = run.at("ids");
    CHECK(tokenizer.encode(run.at("prompt").get<std::string>()) == prompt);
    CHECK(reference::greedy(session, prompt, want.size()) == want);
  }

  const auto text = shared_file("data/stories/eval.txt");
  if (text.empty()) return;
  std::ifstream in(text, std::ios::binary);
  std::string start(16384, ' ');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  std::vector<tenon::Token> tokens = tokenizer.encode(start);
  tokens.erase(tokens.begin());  // BOS, which every window gets
  const tenon::NllSum nll =
      tenon::negative_log_likelihood(session, tokens, {.window = 255, .bos = tenon::Token{1}});
  CHECK(nll.tokens == expected.at("eval_raw").at("tokens").get<tenon::Dim>());
  CHECK(nll.mean() == Approx(expected.at("eval_raw").at("nll").get<double>()).margin(1e-4));
}

}  // namespace golden
