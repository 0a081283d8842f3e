#pragma once
// DeepSeek-V2, V2-Lite, V3 and R1 (arXiv 2405.04434, 2412.19437): latent attention everywhere, a
// few dense layers, then experts. Whether queries are compressed, how experts are chosen and YaRN's
// numbers come from the checkpoint.
#include "../attn/masks.hpp"
#include "../cache/contiguous.hpp"
#include "../mixer/mla.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/moe.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

// [deepseek2]
inline constexpr MoeSpec deepseek2_experts{.renormalise = false, .shared = true};

template <class Cache, MlaSpec S = MlaSpec{}>
using DeepSeek2Attention = Mla<S, Causal, Yarn, Cache>;
template <class Cache, MlaSpec S = MlaSpec{}>
using DeepSeek2Dense = Block<DeepSeek2Attention<Cache, S>, SwiGlu, RmsNorm>;
template <class Cache, MlaSpec S = MlaSpec{}>
using DeepSeek2Sparse = Block<DeepSeek2Attention<Cache, S>, Moe<deepseek2_experts>, RmsNorm>;

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats,
          MlaSpec S = MlaSpec{}>
using DeepSeek2 =
    Decoder<Kinds<DeepSeek2Dense<Cache, S>, DeepSeek2Sparse<Cache, S>>, FirstThen{}, Formats>;
// [deepseek2]

}  // namespace tenon::inline TENON_ABI::zoo
