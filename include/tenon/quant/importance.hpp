#pragma once
// Quantizing with an importance matrix: how much an error of each column of a weight counts.
#include <cmath>
#include <concepts>

#include "bit_planes.hpp"
#include "blocks.hpp"
#include "encode_blocks.hpp"
#include "five_bits.hpp"
#include "format.hpp"
#include "k_search.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// The formats whose plain encoders take the scale from the extremes; under importance it is
// searched.
template <class F>
concept UnsearchedBlocks = std::same_as<F, Q4_0> || std::same_as<F, Q4_1> ||
    std::same_as<F, Q5_0> || std::same_as<F, Q5_1>;

template <UnsearchedBlocks F>
void encode_unsearched(const float* x, Dim n, std::byte* to, const float* importance) {
  constexpr bool five = std::same_as<F, Q5_0> || std::same_as<F, Q5_1>;
  constexpr bool minima = std::same_as<F, Q4_1> || std::same_as<F, Q5_1>;
  constexpr int levels = five ? 32 : 16;
  const float around = mean_square(x, n);
  const auto encode_block = [&](const float* values, const float* important, std::byte* at) {
    std::uint8_t codes[F::block];
    float weights[F::block];
    weigh_squares(values, important, F::block, around, weights);
    if constexpr (minima) {
      const AffineFit fit =
          search_affine(values, weights, F::block, levels - 1, important_search, codes);
      store_half(fit.scale, at);
      store_half(-fit.minimum, at + 2);
    } else {
      store_half(search_symmetric(values, F::block, levels / 2, codes, weights), at);
    }
    std::byte* code_bytes = at + (minima ? 4 : 2);
    if constexpr (five) {
      write_five_bits(codes, code_bytes);
    } else {
      BitPlane<4, 16>::write(codes, F::block, code_bytes);
    }
  };
  encode_weighted_blocks<F::block, F::block_bytes>(x, n, to, 0, importance, encode_block);
}
}  // namespace detail

// Whether the importance of columns changes what F makes of a row.
template <class F>
inline constexpr bool weighs_importance = detail::UnsearchedBlocks<F> ||
                                          requires(const float* x, std::byte* to) {
  F::encode(x, F::block, to, x);
};

// Encodes a row of n values, n a multiple of F's block, so that the errors that count most are
// smallest. `importance` [n]: of each column, positive, the mean of the squares of what it is
// multiplied with (llama.cpp's imatrix); the scale of all of them does not matter. Formats without
// a search encode as ever. Source: ggml's quantizers under an imatrix.
template <Format F>
void encode_important(const float* x, Dim n, std::byte* to, const float* importance) {
  if constexpr (detail::UnsearchedBlocks<F>) {
    detail::encode_unsearched<F>(x, n, to, importance);
  } else if constexpr (weighs_importance<F>) {
    F::encode(x, n, to, importance);
  } else {
    F::encode(x, n, to);
  }
}

}  // namespace tenon::inline TENON_ABI
