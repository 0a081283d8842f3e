#pragma once
// Mixtral and other Llama-like files with experts (arXiv 2401.04088); their architecture is
// "llama".
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/moe.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

inline constexpr MoeSpec mixtral_experts{.gate = Gate::softmax, .renormalise = true};

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats>
using Mixtral =
    Decoder<Kinds<Block<Gqa<GqaSpec{}, Causal, Rope, Cache>, Moe<mixtral_experts>, RmsNorm>>,
            Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
