#pragma once
// Llama-family decoders: Llama 1 to 3.x, Mistral without a window, TinyLlama, SmolLM, story models.
#include "../attn/masks.hpp"
#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

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
