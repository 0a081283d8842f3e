#pragma once
// Qwen 3 with experts (arXiv 2505.09388).
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/moe.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"
#include "qwen3.hpp"

namespace tenon::inline TENON_ABI::zoo {

inline constexpr MoeSpec qwen3_experts{.gate = Gate::softmax, .renormalise = true};

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats>
using Qwen3Moe = Decoder<
    Kinds<Block<Gqa<qwen3_attention, Causal, RopeHalves, Cache>, Moe<qwen3_experts>, RmsNorm>>,
    Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
