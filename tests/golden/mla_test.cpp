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

TEST_CASE("story-mla: logits, greedy ids", "[golden]") {
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
  for (const auto& run : expected.at("greedy")) {
    const std::vector<Token> want = run.at("ids");
    CHECK(reference::greedy(session, run.at("prompt_ids"), want.size()) == want);
  }
}
