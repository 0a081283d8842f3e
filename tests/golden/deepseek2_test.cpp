// DeepSeek-V2 and V3 against an independent implementation.
#include "tenon/zoo/deepseek2.hpp"
#include "golden/trained.hpp"
#include "golden/zoo.hpp"

using namespace tenon;

TEST_CASE("deepseek2-lite: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::DeepSeek2<>>("deepseek2-lite");
}
TEST_CASE("deepseek2-full: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::DeepSeek2<>>("deepseek2-full");
}
TEST_CASE("story-mla: logits, greedy ids, perplexity", "[golden]") {
  golden::check_trained("story-mla", [](const Gguf& file) { return zoo::DeepSeek2<>::bind(file); });
}
