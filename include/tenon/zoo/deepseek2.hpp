#pragma once
// DeepSeek-V2, V2-Lite, V3 and R1: latent attention, some dense layers, then experts.
#include "../mixer/mla.hpp"
#include "../cache/contiguous.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

// [deepseek2]
template <class Cache, MlaSpec S = MlaSpec{}>
using DeepSeekAttention = Mla<S, Causal, Yarn, Cache>;
template <class Cache, MlaSpec S = MlaSpec{}>
using DeepSeekDenseLayer = Block<DeepSeekAttention<Cache, S>, SwiGlu, RmsNorm>;
// [deepseek2]

}  // namespace tenon::inline TENON_ABI::zoo
