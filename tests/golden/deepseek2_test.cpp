// The trained model with latent attention.
#include "tenon/zoo/deepseek2.hpp"
#include "golden/trained.hpp"

using namespace tenon;

TEST_CASE("story-mla: logits, greedy ids, perplexity", "[golden]") {
  golden::check_trained("story-mla", [](const Gguf& file) { return zoo::DeepSeek2<>::bind(file); });
}
