#pragma once
// Sizes of published models.
#include "tenon/cost/roofline.hpp"

namespace published {

using tenon::cost::DenseSizes;

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
inline constexpr DenseSizes stories15m{.width = 288,
                                       .hidden = 768,
                                       .heads = 6,
                                       .kv_heads = 6,
                                       .head_dim = 48,
                                       .layers = 6,
                                       .vocab = 32000,
                                       .tied = true};
inline constexpr DenseSizes stories260k{.width = 64,
                                        .hidden = 172,
                                        .heads = 8,
                                        .kv_heads = 4,
                                        .head_dim = 8,
                                        .layers = 5,
                                        .vocab = 512,
                                        .tied = true};

// The lecture's model: its formula has no norms.
constexpr tenon::cost::ModelSizes lecture(tenon::Dim kv_heads) {
  DenseSizes s = llama2_13b;
  s.kv_heads = kv_heads;
  s.norms = false;
  return tenon::cost::dense(s);
}

// Equal to a relative 1e-12.
constexpr bool same(double a, double b) {
  const double apart = a < b ? b - a : a - b;
  return apart <= 1e-12 * (b < 0 ? -b : b);
}
// Equal to the last of the digits that are printed: |a - b| at most half a unit of `digit`.
constexpr bool printed(double a, double b, double digit) {
  const double apart = a < b ? b - a : a - b;
  return apart <= digit / 2 * (1 + 1e-9);
}

}  // namespace published
