#pragma once
// gpt-oss (arXiv 2508.10925): every other layer sees a window, every head has a learned sink,
// biases everywhere, experts in MXFP4.
#include "../attn/score_hooks.hpp"
#include "../cache/contiguous.hpp"
#include "../cache/ring.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../model/interleave.hpp"
#include "../nn/moe.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

// Even layers see a window, odd ones everything.
inline constexpr Interleave gpt_oss_plan{.period = 2, .rare_at = 1};
inline constexpr MoeSpec gpt_oss_experts{
    .gate = Gate::softmax_of_chosen, .renormalise = false, .bias = true};

template <class M, class Cache>
using GptOssLayer =
    Block<Gqa<GqaSpec{}, M, RopeHalves, Cache, LearnedSinks>, Moe<gpt_oss_experts, ClampedSilu>,
          RmsNorm, PreNormNamed<"attn_norm", "post_attention_norm">>;

template <class Window = Ring<CacheFormats>, class Cache = Contiguous<CacheFormats>,
          class Formats = WeightFormats>
using GptOss = Decoder<Kinds<GptOssLayer<SlidingWindow, Window>, GptOssLayer<Causal, Cache>>,
                       gpt_oss_plan, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
