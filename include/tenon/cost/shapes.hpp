#pragma once
// Sizes of published models, by name.
#include <string_view>

#include "model_sizes.hpp"

namespace tenon::inline TENON_ABI::cost {

namespace shapes {
inline constexpr DenseSizes llama2_7b{.width = 4096,
                                      .hidden = 11008,
                                      .heads = 32,
                                      .kv_heads = 32,
                                      .head_dim = 128,
                                      .layers = 32,
                                      .vocab = 32000};
inline constexpr DenseSizes llama2_13b{.width = 5120,
                                       .hidden = 13824,
                                       .heads = 40,
                                       .kv_heads = 40,
                                       .head_dim = 128,
                                       .layers = 40,
                                       .vocab = 32000};
inline constexpr DenseSizes llama2_70b{.width = 8192,
                                       .hidden = 28672,
                                       .heads = 64,
                                       .kv_heads = 8,
                                       .head_dim = 128,
                                       .layers = 80,
                                       .vocab = 32000};
inline constexpr DenseSizes llama3_8b{.width = 4096,
                                      .hidden = 14336,
                                      .heads = 32,
                                      .kv_heads = 8,
                                      .head_dim = 128,
                                      .layers = 32,
                                      .vocab = 128256};
inline constexpr DenseSizes llama3_70b{.width = 8192,
                                       .hidden = 28672,
                                       .heads = 64,
                                       .kv_heads = 8,
                                       .head_dim = 128,
                                       .layers = 80,
                                       .vocab = 128256};
inline constexpr DenseSizes mistral_7b{.width = 4096,
                                       .hidden = 14336,
                                       .heads = 32,
                                       .kv_heads = 8,
                                       .head_dim = 128,
                                       .layers = 32,
                                       .vocab = 32000};
inline constexpr DenseSizes stories_15m{.width = 288,
                                        .hidden = 768,
                                        .heads = 6,
                                        .kv_heads = 6,
                                        .head_dim = 48,
                                        .layers = 6,
                                        .vocab = 32000,
                                        .tied = true};
inline constexpr DenseSizes stories_260k{.width = 64,
                                         .hidden = 172,
                                         .heads = 8,
                                         .kv_heads = 4,
                                         .head_dim = 8,
                                         .layers = 5,
                                         .vocab = 512,
                                         .tied = true};

// Mixtral 8x7B (arXiv 2401.04088).
constexpr ModelSizes mixtral_8x7b(Element weights = elements::bf16,
                                  Element cache = elements::bf16) {
  DenseSizes like = mistral_7b;
  like.weights = weights;
  like.cache = cache;
  ModelSizes model = dense(like);
  model.groups[0].layer.feed_forward = experts_numbers(4096, 14336, 8, 2);
  return model;
}
// DeepSeek-V2 (arXiv 2405.04434): one dense layer, then 160 experts of which 6 are used and two
// that all tokens share.
constexpr ModelSizes deepseek_v2(Element weights = elements::bf16, Element cache = elements::bf16) {
  ModelSizes model;
  model.width = 5120;
  model.vocab = 102400;
  model.weights = WeightElements::all(weights);
  model.output_norm.vectors = 5120;
  LayerSizes layer;
  layer.mixer = latent_numbers(5120, 128, 512, 64, 128, 128, 1536);
  layer.residual.vectors = 2 * 5120;
  layer.cache.row_bytes = cache.bytes_of(512 + 64);
  layer.feed_forward = mlp_numbers(5120, 12288);
  model.add(layer);
  layer.feed_forward = experts_numbers(5120, 1536, 160, 6, 2 * 1536);
  model.add(layer, 59);
  return model;
}
}  // namespace shapes

inline constexpr std::string_view shape_names =
    "llama2-7b, llama2-13b, llama2-70b, llama3-8b, llama3-70b, mistral-7b, mixtral-8x7b, "
    "deepseek-v2, stories-15m, stories-260k";

namespace detail {
struct NamedShape {
  std::string_view name;
  DenseSizes sizes;
};
inline constexpr NamedShape dense_shapes[] = {
    {"llama2-7b", shapes::llama2_7b},     {"llama2-13b", shapes::llama2_13b},
    {"llama2-70b", shapes::llama2_70b},   {"llama3-8b", shapes::llama3_8b},
    {"llama3-70b", shapes::llama3_70b},   {"mistral-7b", shapes::mistral_7b},
    {"stories-15m", shapes::stories_15m}, {"stories-260k", shapes::stories_260k}};

constexpr DenseSizes dense_shape_named(std::string_view name) {
  for (const NamedShape& shape : dense_shapes) {
    if (shape.name == name) return shape.sizes;
  }
  fail<RequestError>("a shape must be one of ", shape_names, ", it is \"", printable(name),
                     "\"; name one of these, or open a checkpoint");
}
}  // namespace detail

// The model of one of these names with its weights and cached rows in these elements. RequestError
// when there is none.
constexpr ModelSizes shape_named(std::string_view name, Element weights = elements::bf16,
                                 Element cache = elements::bf16) {
  if (name == "mixtral-8x7b") return shapes::mixtral_8x7b(weights, cache);
  if (name == "deepseek-v2") return shapes::deepseek_v2(weights, cache);
  DenseSizes sizes = detail::dense_shape_named(name);
  sizes.weights = weights;
  sizes.cache = cache;
  return dense(sizes);
}
// Heads of queries of that model, and values of each, without those of rotary positions apart.
struct QueryHeads {
  Dim count = 0, width = 0;
};
constexpr QueryHeads query_heads_named(std::string_view name) {
  if (name == "mixtral-8x7b") name = "mistral-7b";
  if (name == "deepseek-v2") return {128, 128};
  const DenseSizes sizes = detail::dense_shape_named(name);
  return {sizes.heads, sizes.head_dim};
}

}  // namespace tenon::inline TENON_ABI::cost
