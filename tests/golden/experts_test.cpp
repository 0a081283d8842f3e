// Mixtures of experts against an independent implementation.
#include "golden/zoo.hpp"
#include "tenon/zoo/gpt_oss.hpp"
#include "tenon/zoo/mixtral.hpp"
#include "tenon/zoo/qwen3moe.hpp"

using namespace tenon;

namespace {

template <class M>
void check(const std::string& name) {
  golden::check_zoo(name, [](const Gguf& file) { return M::bind(file); }, {"f32", "f16", "q8_0"});
}

}  // namespace

TEST_CASE("mixtral: logits and greedy ids", "[golden]") {
  check<zoo::Mixtral<>>("mixtral");
}
TEST_CASE("qwen3moe: logits and greedy ids", "[golden]") {
  check<zoo::Qwen3Moe<>>("qwen3moe");
}
TEST_CASE("gpt-oss: logits and greedy ids", "[golden]") {
  check<zoo::GptOss<>>("gpt-oss");
}
