// Families of dense layers against an independent implementation.
#include "golden/zoo.hpp"
#include "tenon/zoo/llada.hpp"
#include "tenon/zoo/qwen2.hpp"
#include "tenon/zoo/qwen3.hpp"

using namespace tenon;

namespace {

template <class M>
void check(const std::string& name) {
  golden::check_zoo(name, [](const Gguf& file) { return M::bind(file); }, {"f32", "f16", "q8_0"});
}

}  // namespace

TEST_CASE("qwen2: logits and greedy ids", "[golden]") {
  check<zoo::Qwen2<>>("qwen2");
}
TEST_CASE("qwen3: logits and greedy ids", "[golden]") {
  check<zoo::Qwen3<>>("qwen3");
}
TEST_CASE("llada: logits and greedy ids", "[golden]") {
  check<zoo::Llada<>>("llada");
}
