#pragma once
// Gemma 3 (arXiv 2503.19786): five layers that see a window to one that sees everything, each with
// its own rotary base; queries and keys of every head are normed.
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

inline constexpr Interleave gemma3_plan{.period = 6, .rare_at = 5};
inline constexpr GqaSpec gemma3_attention{.qk_norm = QkNorm::per_head};

template <class M, class Pos, class Cache>
using Gemma3Layer =
    Block<Gqa<gemma3_attention, M, Pos, Cache, GemmaScale<62>>, GeGlu, RmsNorm, SandwichNorm>;

template <class Window = Ring<CacheFormats>, class Cache = Contiguous<CacheFormats>,
          class Formats = WeightFormats>
using Gemma3 = Decoder<Kinds<Gemma3Layer<SlidingWindow, LocalRopeHalves, Window>,
                             Gemma3Layer<Causal, RopeHalves, Cache>>,
                       gemma3_plan, Formats, DecoderSpec{}, ScaledEmbedding>;

}  // namespace tenon::inline TENON_ABI::zoo
