#pragma once
// The loop that encoders of blocks share: a block that its format cannot express becomes NaN.
#include <cmath>
#include <cstring>
#include <limits>

#include "blocks.hpp"
#include "rounding.hpp"

namespace tenon::inline TENON_ABI::detail {

// Calls encode(x, to) for each block of n values, `to` being zeroed; of a block that it cannot
// express (see beyond_blocks) only the half at `d_at` is written, as a NaN.
template <Dim Block, std::size_t Bytes, class Encode>
void encode_blocks(const float* x, Dim n, std::byte* to, std::size_t d_at, Encode encode) {
  for (; n > 0; n -= Block, x += Block, to += Bytes) {
    std::memset(to, 0, Bytes);
    if (beyond_blocks(x, Block)) {
      store_half(std::numeric_limits<float>::quiet_NaN(), to + d_at);
    } else {
      encode(x, to);
    }
  }
}

// The same for encoders that can be told how much an error of each value counts: `importance` is
// [n] or null, and each block's part of it goes to encode(x, importance, to).
template <Dim Block, std::size_t Bytes, class Encode>
void encode_weighted_blocks(const float* x, Dim n, std::byte* to, std::size_t d_at,
                            const float* importance, Encode encode) {
  const float* first = x;
  encode_blocks<Block, Bytes>(x, n, to, d_at, [&](const float* values, std::byte* at) {
    encode(values, importance == nullptr ? nullptr : importance + (values - first), at);
  });
}

// The mean of n squares, summed from the first on.
inline float mean_square(const float* x, Dim n) {
  float sum = 0;
  for (Dim i = 0; i < n; ++i) sum += product(x[i], x[i]);
  return sum / static_cast<float>(n);
}
// Weights of a search over n values around which squares are `around`: importance times
// sqrt(around + x^2); without importance x^2.
inline void weigh_squares(const float* x, const float* importance, Dim n, float around,
                          float* weights) {
  for (Dim i = 0; i < n; ++i) {
    const float square = x[i] * x[i];
    weights[i] =
        importance == nullptr ? square : importance[i] * std::sqrt(around + product(x[i], x[i]));
  }
}

}  // namespace tenon::inline TENON_ABI::detail
