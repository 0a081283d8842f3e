#pragma once
// A model with other attention in place of its own: what the choice would cost or save.
#include <string_view>

#include "model_sizes.hpp"

namespace tenon::inline TENON_ABI::cost {

// kv_heads heads of keys and values, or latents of `rank` + `rope` values for each row.
struct AttentionVariant {
  std::string_view name{};
  Dim kv_heads = 0;
  Dim rank = 0, rope = 0;  // 0: not latent
  Dim share = 1;           // as many neighbours share rows (arXiv 2405.12981)
  Dim reach = 0;           // newest rows that are seen; 0: all
};

// Every layer that caches rows, as `v` has them with `heads` queries of head_dim values; layers
// with a state, feed-forwards, embeddings and norms stay. Rows are in `cache`, and not paged.
// RequestError when kv_heads do not divide heads.
constexpr ModelSizes with_attention(const ModelSizes& m, Dim heads, Dim head_dim,
                                    const AttentionVariant& v, Element cache = elements::bf16) {
  detail::check_heads(heads, v.rank > 0 ? heads : v.kv_heads, v.share);
  ModelSizes out = m;
  out.groups = {};
  out.size = 0;
  for (int i = 0; i < m.size; ++i) {
    const auto& [was, count] = m.groups[static_cast<std::size_t>(i)];
    if (was.cache.row_bytes == 0) {
      out.add(was, count);
      continue;
    }
    LayerSizes layer = was;
    layer.cache = {};
    layer.cache.reach = v.reach;
    layer.cache.row_bytes = v.rank > 0 ? cache.bytes_of(v.rank + v.rope)
                                       : 2 * cache.bytes_of(exact_product(v.kv_heads, head_dim));
    const Dim owners = (count + v.share - 1) / v.share;
    for (const bool owns : {true, false}) {
      layer.cache.owns = owns;
      layer.mixer =
          v.rank > 0 ? latent_numbers(m.width, heads, v.rank, v.rope, head_dim, head_dim, 0, owns)
                     : attention_numbers(m.width, heads, v.kv_heads, head_dim, owns);
      const Dim n = owns ? owners : count - owners;
      if (n > 0) out.add(layer, n);
    }
  }
  return out;
}

}  // namespace tenon::inline TENON_ABI::cost
