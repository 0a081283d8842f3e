#pragma once
// Fewer key/value heads (arXiv 2305.13245, section 2.1).
#include <algorithm>

#include "key_values.hpp"

namespace tenon::inline TENON_ABI {

// How the heads of a group become one: their mean, or the first of them. The mean is closest to all
// of them and what the paper found best after more training; without any, the first diverged less
// on the models tried, because heads are nearly orthogonal and their mean is therefore short.
enum class HeadPooling { mean, first };

namespace detail {

// heads x head_dim rows become kv_heads x head_dim: each group of neighbours becomes one head.
inline Projection pool_heads(const Projection& p, Dim heads, Dim kv_heads, HeadPooling pooling) {
  const Dim head_dim = p.out / heads, group = heads / kv_heads;
  const Dim used = pooling == HeadPooling::mean ? group : 1;
  Projection pooled = zeros(kv_heads * head_dim, p.in, !p.bias.empty());
  for (Dim i = 0; i < pooled.out; ++i) {
    const Dim first = i / head_dim * group * head_dim + i % head_dim;
    for (Dim k = 0; k < p.in; ++k) {
      double sum = 0;
      for (Dim h = 0; h < used; ++h) sum += static_cast<double>(p.row(first + h * head_dim)[k]);
      pooled.row(i)[k] = static_cast<float>(sum / static_cast<double>(used));
    }
    if (p.bias.empty()) continue;
    double sum = 0;
    for (Dim h = 0; h < used; ++h) sum += p.shift(first + h * head_dim);
    pooled.bias[static_cast<std::size_t>(i)] = static_cast<float>(sum / static_cast<double>(used));
  }
  return pooled;
}
// The other way: every head of a group gets its one.
inline Projection repeat_heads(const Projection& p, Dim kv_heads, Dim heads) {
  const Dim head_dim = p.out / kv_heads, group = heads / kv_heads;
  Projection repeated = zeros(heads * head_dim, p.in, !p.bias.empty());
  for (Dim i = 0; i < repeated.out; ++i) {
    const Dim from = i / (group * head_dim) * head_dim + i % head_dim;
    std::copy_n(p.row(from), p.in, repeated.row(i));
    if (!p.bias.empty()) {
      repeated.bias[static_cast<std::size_t>(i)] = p.bias[static_cast<std::size_t>(from)];
    }
  }
  return repeated;
}

}  // namespace detail

// A checkpoint with `kv_heads` key/value heads in every layer that owns its keys and values: of
// each group of neighbouring heads, W_K'[g] = mean of W_K[h], and so W_V and both biases; queries
// and outputs stay. It commutes with the rotation, which is linear and the same for all heads, but
// not with norms of keys, so a model with those is refused. With as many heads as there are nothing
// changes. The type stays what it is; tensors that change become f32. Errors on `text` when given.
// RequestError: kv_heads does not divide a layer's; LoadError, ShapeError: the file does not fit.
inline Conversion to_gqa(const TensorSource& source, Dim kv_heads,
                         HeadPooling pooling = HeadPooling::mean,
                         const MixerInputs* text = nullptr) {
  const ConfigStorage storage(source);
  const ModelConfig config = storage.view();
  const auto known = [&](std::string_view name) { return config.architecture == name; };
  if (!known("llama") && !known("qwen2") && !known("hybrid")) {
    fail<LoadError>(source.origin(),
                    ": to_gqa needs an architecture whose metadata say all about its windows "
                    "(llama, qwen2, hybrid), this is \"",
                    config.architecture, "\"; the receipt would be wrong");
  }
  detail::check_text(text, config);
  Conversion out{EditedSource(source), {}};
  out.report.conversion = message("to_gqa: ", kv_heads, " key/value heads");
  out.report.on_text = text != nullptr;
  out.report.before = cache_cost(config);
  const int layers = config.layers();
  for (int layer = 0; layer < layers; ++layer) {
    const auto sizes = detail::AttentionSizes::read(config, layer);
    if (kv_heads < 1 || sizes.kv_heads % kv_heads != 0) {
      fail<RequestError>("the number of key/value heads must divide the ", sizes.kv_heads,
                         " of layer ", layer, ", it is ", kv_heads, "; choose a divisor");
    }
    if (detail::owner_of(config, layer) != layer) continue;
    if (source.find(detail::in_layer(layer, "attn_k_norm.weight")) != nullptr) {
      fail<LoadError>(
          source.origin(), ": to_gqa needs keys without a norm, layer ", layer,
          " has attn_k_norm; the mean of normed heads is not the norm of their mean, so "
          "convert a model without it");
    }
    LayerError error{layer, 0, 0};
    for (const std::string_view name : {"attn_k", "attn_v"}) {
      const auto whole = detail::read_projection(source, layer, name,
                                                 sizes.kv_heads * sizes.head_dim, config.width());
      if (sizes.kv_heads == kv_heads) continue;
      const auto pooled = detail::pool_heads(whole, sizes.kv_heads, kv_heads, pooling);
      detail::write_projection(out.source, layer, name, pooled);
      (name == "attn_k" ? error.keys : error.values) = detail::relative_error(
          detail::repeat_heads(pooled, kv_heads, sizes.kv_heads), whole, text, layer);
    }
    if (sizes.kv_heads != kv_heads) out.report.layers.push_back(error);
  }
  if (!out.report.layers.empty()) {
    out.source.set("attention.head_count_kv", static_cast<std::uint32_t>(kv_heads));
  }
  out.report.after = cache_cost(out.source);
  return out;
}

}  // namespace tenon::inline TENON_ABI
