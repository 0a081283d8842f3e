#pragma once
// Our own architecture "llama-mla": a Llama whose keys and values were made latent by to_mla().
#include "../attn/masks.hpp"
#include "../cache/contiguous.hpp"
#include "../mixer/mla.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "../nn/repeated_rope.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

inline constexpr MlaSpec llama_mla{.latent_norm = false};

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats>
using LlamaMla = Decoder<Kinds<Block<Mla<llama_mla, Causal, RepeatedRope, Cache>, SwiGlu, RmsNorm>>,
                         Uniform{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
