// The Gemma family against an independent implementation.
#include "golden/zoo.hpp"
#include "tenon/zoo/gemma2.hpp"
#include "tenon/zoo/gemma3.hpp"
#include "tenon/zoo/gemma4.hpp"

using namespace tenon;

TEST_CASE("gemma2: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Gemma2<>>("gemma2");
}
TEST_CASE("gemma3: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Gemma3<>>("gemma3");
}
TEST_CASE("gemma4: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Gemma4<>>("gemma4");
}
