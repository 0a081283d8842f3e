// DeepSeek-V2 and V3 against an independent implementation.
#include "tenon/zoo/deepseek2.hpp"
#include "golden/trained.hpp"
#include "golden/zoo.hpp"

using namespace tenon;

namespace {

template <class M>
void check(const std::string& name) {
  golden::check_zoo(name, [](const Gguf& file) { return M::bind(file); }, {"f32", "f16", "q8_0"});
}

}  // namespace

TEST_CASE("deepseek2-lite: logits and greedy ids", "[golden]") {
  check<zoo::DeepSeek2<>>("deepseek2-lite");
}
TEST_CASE("deepseek2-full: logits and greedy ids", "[golden]") {
  check<zoo::DeepSeek2<>>("deepseek2-full");
}
TEST_CASE("story-mla: logits, greedy ids, perplexity", "[golden]") {
  golden::check_trained("story-mla", [](const Gguf& file) { return zoo::DeepSeek2<>::bind(file); });
}
