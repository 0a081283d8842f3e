// The trained model with windows and shared keys and values, and the bytes that it caches for a
// token.
#include "tenon/zoo/hybrid.hpp"
#include "golden/trained.hpp"

using namespace tenon;

TEST_CASE("story-cla: logits, greedy ids, perplexity", "[golden]") {
  golden::check_trained("story-cla", [](const Gguf& file) { return zoo::Hybrid<>::bind(file); });
}

TEST_CASE("story-cla: cache bytes", "[golden]") {
  const auto file = shared_file("models/trained/story-cla.gguf");
  if (file.empty()) return;
  const auto model = zoo::Hybrid<>::bind(Gguf::open(file));
  // Two windows of 64 rows and one layer that keeps all, two key heads of 32 values each, 16 bits.
  for (const int context : {64, 128, 512}) {
    const Limits limits{.seqs = 1, .context = context, .step_tokens = 1};
    CHECK(model.cache_bytes(limits, "f16") == 32768 + 256 * static_cast<std::size_t>(context));
  }
}
