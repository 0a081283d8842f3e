// Mixtures of experts against an independent implementation: logits at every position, greedy ids.
#include "tenon/nn/moe.hpp"
#include "golden/zoo.hpp"
#include "tenon/attn/score_hooks.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/mixer/gqa.hpp"
#include "tenon/mixer/mla.hpp"
#include "tenon/model/decoder.hpp"
#include "tenon/model/interleave.hpp"

using namespace tenon;

namespace {

using Cache = Contiguous<F32>;
using Formats = AnyOf<F32, F16, Mxfp4>;
template <class Attention, class FeedForward, class Residual = PreNorm>
using Layer = Block<Attention, FeedForward, RmsNorm, Residual>;

// Architecture "llama" with experts.
using Mixtral =
    Decoder<Kinds<Layer<Gqa<GqaSpec{}, Causal, Rope, Cache>, Moe<MoeSpec{}>>>, Uniform{}, Formats>;

inline constexpr GqaSpec head_norms{.qk_norm = QkNorm::per_head};
using Qwen3Moe = Decoder<Kinds<Layer<Gqa<head_norms, Causal, RopeHalves, Cache>, Moe<MoeSpec{}>>>,
                         Uniform{}, Formats>;

inline constexpr MoeSpec deepseek{.renormalise = false, .shared = true};
using Latent = Mla<MlaSpec{}, Causal, Yarn, Cache>;
using DeepSeek2 =
    Decoder<Kinds<Layer<Latent, SwiGlu>, Layer<Latent, Moe<deepseek>>>, FirstThen{}, Formats>;

inline constexpr MoeSpec gpt_oss{
    .gate = Gate::softmax_of_chosen, .renormalise = false, .bias = true};
template <class Mask>
using GptOssLayer =
    Layer<Gqa<GqaSpec{}, Mask, RopeHalves, Cache, LearnedSinks>, Moe<gpt_oss, ClampedSilu>,
          PreNormNamed<"attn_norm", "post_attention_norm">>;
inline constexpr Interleave every_other{.period = 2, .rare_at = 1};
using GptOss =
    Decoder<Kinds<GptOssLayer<SlidingWindow>, GptOssLayer<Causal>>, every_other, Formats>;

template <class M>
void check(const std::string& name) {
  golden::check_zoo(name, [](const Gguf& file) { return M::bind(file); }, {"f32"});
}

}  // namespace

TEST_CASE("mixtral: logits and greedy ids", "[golden]") {
  check<Mixtral>("mixtral");
}
TEST_CASE("qwen3moe: logits and greedy ids", "[golden]") {
  check<Qwen3Moe>("qwen3moe");
}
TEST_CASE("deepseek2: logits and greedy ids", "[golden]") {
  check<DeepSeek2>("deepseek2-lite");
  check<DeepSeek2>("deepseek2-full");
}
TEST_CASE("gpt-oss: logits and greedy ids", "[golden]") {
  golden::check_zoo(
      "gpt-oss", [](const Gguf& file) { return GptOss::bind(file); }, {"f32"}, Activations::f32);
}
