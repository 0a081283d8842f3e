// Families of dense layers against an independent implementation.
#include "golden/zoo.hpp"
#include "tenon/zoo/llada.hpp"
#include "tenon/zoo/qwen2.hpp"
#include "tenon/zoo/qwen3.hpp"

using namespace tenon;

TEST_CASE("qwen2: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Qwen2<>>("qwen2");
}
TEST_CASE("qwen3: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Qwen3<>>("qwen3");
}
TEST_CASE("llada: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Llada<>>("llada");
}
