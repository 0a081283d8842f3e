#pragma once
// Phi-3, 3.5 and 4 (arXiv 2404.14219): partial rotary heads, fused projections, a window in some
// sizes, and in those of long contexts LongRoPE.
#include "../cache/ring.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

inline constexpr GqaSpec phi3_attention{.fused = true};
using Phi3Mlp = GatedMlp<Silu, MlpSpec{.fused = true}>;

// Without a window in the file a ring holds all rows.
template <class Pos = RopeHalves, class Cache = Ring<CacheFormats>, class Formats = WeightFormats>
using Phi3 = Decoder<Kinds<Block<Gqa<phi3_attention, StatedWindow, Pos, Cache>, Phi3Mlp, RmsNorm>>,
                     Uniform{}, Formats>;
using Phi3Long = Phi3<LongRopeHalves>;

}  // namespace tenon::inline TENON_ABI::zoo
