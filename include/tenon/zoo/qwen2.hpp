#pragma once
// Qwen 2 and 2.5 (arXiv 2407.10671): Llama with biases on queries, keys and values, which Gqa takes
// from the file when they are there, and half-split rotary pairs.
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats>
using Qwen2 = Decoder<Kinds<Block<Gqa<GqaSpec{}, Causal, RopeHalves, Cache>, SwiGlu, RmsNorm>>,
                      Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
