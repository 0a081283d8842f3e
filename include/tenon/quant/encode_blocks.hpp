#pragma once
// The loop that encoders of blocks share: a block that its format cannot express becomes NaN.
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

}  // namespace tenon::inline TENON_ABI::detail
