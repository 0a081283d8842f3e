#pragma once
// Llama-family decoders: Llama 1 to 3.x, Mistral without a window, TinyLlama, SmolLM, story models.
#include "../attn/mask.hpp"
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "../quant/fp8.hpp"

namespace tenon::inline TENON_ABI::zoo {

// Element formats a cache offers unless told otherwise; the first is the default.
using CacheFormats = AnyOf<F16, F32, Q8_0, Bf16, Q4_0, Fp8E4M3, Fp8E5M2>;
using WeightFormats = AnyOf<F32, F16, Bf16, Q8_0, Q4_0, Q4_1>;

// Every size of a Llama; those left out are read from the checkpoint.
struct LlamaSizes {
  Dim width = dyn, layers = dyn, vocab = dyn;
  Dim heads = dyn, kv_heads = dyn, head_dim = dyn, hidden = dyn;
};

// [llama]
template <class Cache, LlamaSizes S = LlamaSizes{}>
using LlamaLayer =
    Block<Gqa<GqaSpec{.heads = S.heads, .kv_heads = S.kv_heads, .head_dim = S.head_dim}, Causal,
              Rope, Cache>,
          GatedMlp<Silu, MlpSpec{.hidden = S.hidden}>, RmsNorm>;

template <class Cache = Contiguous<CacheFormats>, class Formats = WeightFormats,
          LlamaSizes S = LlamaSizes{}>
using Llama = Decoder<Kinds<LlamaLayer<Cache, S>>, Uniform{}, Formats,
                      DecoderSpec{.width = S.width, .layers = S.layers, .vocab = S.vocab}>;
// [llama]

}  // namespace tenon::inline TENON_ABI::zoo
