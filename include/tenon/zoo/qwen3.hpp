#pragma once
// Qwen 3 (arXiv 2505.09388): queries and keys of every head are normed before their rotation.
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

inline constexpr GqaSpec qwen3_attention{.qk_norm = QkNorm::per_head};

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats>
using Qwen3 =
    Decoder<Kinds<Block<Gqa<qwen3_attention, Causal, RopeHalves, Cache>, SwiGlu, RmsNorm>>,
            Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
