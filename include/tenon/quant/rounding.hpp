#pragma once
// Float arithmetic whose roundings are part of a format's definition, so that a block encodes to
// the same bytes whatever the compiler may contract; and what encoders ask of a block's values.
#include <bit>
#include <cmath>
#include <cstdint>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI::detail {

// x * y rounded, also where the sum it feeds would otherwise become one fused operation. Compilers
// see through a detour by double; they do not see through this.
inline float product(float x, float y) {
  float rounded = x * y;
#if defined(__SSE__)
  asm("" : "+x"(rounded));
#elif defined(__aarch64__)
  asm("" : "+w"(rounded));
#else
  asm("" : "+m"(rounded));
#endif
  return rounded;
}

// x * y + c with both roundings.
inline float multiply_then_add(float x, float y, float c) {
  return product(x, y) + c;
}

// The nearest integer, ties to even, for |x| < 2^22. Other values give what the reference's
// quantizer makes of them: some integer in [-2^22, 2^22), 0 for a NaN. Takes products as product().
inline int nearest(float x) {
  const float aligned = x + 12582912.0f;  // 1.5 * 2^23: the last place is 1
  return static_cast<int>(std::bit_cast<std::uint32_t>(aligned) & 0x7fffffu) - 0x400000;
}

// Whether a block holds a NaN, an infinity, or what no half scale reaches; below that, products of
// a few values do not overflow.
inline bool beyond_blocks(const float* x, Dim n) {
  bool within = true;
  for (Dim i = 0; i < n; ++i) within = within && std::fabs(x[i]) < 0x1p36f;  // false for a NaN
  return !within;
}

// Of the values of largest magnitude the first, with its sign.
inline float signed_peak(const float* x, Dim n) {
  float peak = 0;
  for (Dim i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(peak)) peak = x[i];
  }
  return peak;
}

}  // namespace tenon::inline TENON_ABI::detail
