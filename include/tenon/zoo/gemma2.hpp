#pragma once
// Gemma 2 (arXiv 2408.00118): every other layer sees a window; attention and final logits are
// capped; norms before and after both halves of a layer.
#include "../attn/score_hooks.hpp"
#include "../cache/contiguous.hpp"
#include "../cache/ring.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../model/interleave.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"
#include "gemma_scale.hpp"

namespace tenon::inline TENON_ABI::zoo {

// Even layers see a window, odd ones everything.
inline constexpr Interleave gemma2_plan{.period = 2, .rare_at = 1};

template <class M, class Cache>
using Gemma2Layer = Block<Gqa<GqaSpec{}, M, RopeHalves, Cache, Scores<GemmaScale<46>, SoftCap>>,
                          GeGlu, RmsNorm, SandwichNorm>;

template <class Window = Ring<CacheFormats>, class Cache = Contiguous<CacheFormats>,
          class Formats = WeightFormats>
using Gemma2 = Decoder<Kinds<Gemma2Layer<SlidingWindow, Window>, Gemma2Layer<Causal, Cache>>,
                       gemma2_plan, Formats, DecoderSpec{}, ScaledEmbedding>;

}  // namespace tenon::inline TENON_ABI::zoo
