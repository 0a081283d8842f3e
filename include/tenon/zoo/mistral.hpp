#pragma once
// Mistral and other Llama-like files whose layers see a window (arXiv 2310.06825).
#include "../cache/contiguous.hpp"
#include "../cache/ring.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

template <class Cache = Ring<CacheFormats>, class Formats = WeightFormats>
using Mistral = Decoder<Kinds<Block<Gqa<GqaSpec{}, SlidingWindow, Rope, Cache>, SwiGlu, RmsNorm>>,
                        Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
