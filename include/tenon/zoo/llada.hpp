#pragma once
// LLaDA (arXiv 2502.09992), masked diffusion: Llama where every token sees every other, so that a
// sequence is given whole in every step.
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats>
using Llada = Decoder<Kinds<Block<Gqa<GqaSpec{}, Bidirectional, Rope, Cache>, SwiGlu, RmsNorm>>,
                      Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
