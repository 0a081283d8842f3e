// Mixtures of experts against an independent implementation.
#include "golden/zoo.hpp"
#include "tenon/zoo/gpt_oss.hpp"
#include "tenon/zoo/mixtral.hpp"
#include "tenon/zoo/qwen3moe.hpp"

using namespace tenon;

TEST_CASE("mixtral: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Mixtral<>>("mixtral");
}
TEST_CASE("qwen3moe: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::Qwen3Moe<>>("qwen3moe");
}
TEST_CASE("gpt-oss: logits and greedy ids", "[golden]") {
  golden::check_family<zoo::GptOss<>>("gpt-oss");
}
