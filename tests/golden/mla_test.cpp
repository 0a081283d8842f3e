// Latent attention against independent implementations: a trained DeepSeek-V2 without experts.
#include "golden/reference.hpp"
#include "tenon/decode/score.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/text/tokenizer.hpp"
#include "tenon/zoo/deepseek2.hpp"

using namespace tenon;
using reference::Logits;

namespace {

template <MlaSpec S>
using Dense = Decoder<Kinds<zoo::DeepSeekDenseLayer<Contiguous<AnyOf<F32, F16>>, S>>, FirstThen{},
                      AnyOf<F32, F16>>;

}  // namespace

TEST_CASE("story-mla: logits, greedy ids, perplexity", "[golden]") {
  const auto file = shared_file("models/trained/story-mla.gguf");
  if (file.empty()) return;
  const Gguf gguf = Gguf::open(file);
  const auto model = Dense<MlaSpec{}>::bind(gguf);
  const auto folder = file.parent_path() / "story-mla";
  const auto expected = reference::json_file(folder / "expected.json");
  auto session = model.open({.seqs = 1, .context = 512, .step_tokens = 64},
                            {.cache = "f32", .activations = Activations::f32, .threads = 1});
  const std::vector<Token> ids = expected.at("logits").at("ids");
  const double worst = reference::largest_difference(reference::logits(session, ids, 64),
                                                     reference::npy(folder / "logits.npy"));
  INFO("largest difference " << worst);
  CHECK(worst <= 2e-4);
  const Tokenizer tokenizer = Tokenizer::from(gguf.metadata());
  for (const auto& run : expected.at("greedy")) {
    const std::vector<Token> prompt = run.at("prompt_ids"), want = run.at("ids");
    CHECK(tokenizer.encode(run.at("prompt").get<std::string>()) == prompt);
    CHECK(reference::greedy(session, prompt, want.size()) == want);
  }

  const auto text = shared_file("data/stories/eval.txt");
  if (text.empty()) return;
  std::ifstream in(text, std::ios::binary);
  std::string start(16384, ' ');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  std::vector<Token> tokens = tokenizer.encode(start);
  tokens.erase(tokens.begin());  // BOS, which every window gets
  auto wide =
      model.open({.seqs = 1, .context = 512, .step_tokens = 256}, {.cache = "f32", .threads = 1});
  const NllSum nll = negative_log_likelihood(wide, tokens, {.window = 255, .bos = Token{1}});
  CHECK(nll.tokens == expected.at("eval_raw").at("tokens").get<Dim>());
  // The file rounds nothing that the reference did not: the same to its own float arithmetic.
  CHECK(nll.mean() == Approx(expected.at("eval_raw").at("nll").get<double>()).margin(5e-5));
}
