// The Gemma family against an independent implementation.
#include "golden/zoo.hpp"
#include "tenon/zoo/gemma2.hpp"
#include "tenon/zoo/gemma3.hpp"
#include "tenon/zoo/gemma4.hpp"

using namespace tenon;

namespace {

template <class M>
void check(const std::string& name) {
  golden::check_zoo(name, [](const Gguf& file) { return M::bind(file); }, {"f32", "f16", "q8_0"});
}

}  // namespace

TEST_CASE("gemma2: logits and greedy ids", "[golden]") {
  check<zoo::Gemma2<>>("gemma2");
}
TEST_CASE("gemma3: logits and greedy ids", "[golden]") {
  check<zoo::Gemma3<>>("gemma3");
}
TEST_CASE("gemma4: logits and greedy ids", "[golden]") {
  check<zoo::Gemma4<>>("gemma4");
}
