#pragma once
// The 32-value block formats of GGUF: Q8_0, Q4_0, Q4_1. Scales are halves; encoders reproduce the
// reference quantizer bit for bit (it divides by the float scale and stores the rounded one).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "format.hpp"
#include "half.hpp"
#include "rounding.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
inline float load_half(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, 2);
  return float_of_half(bits);
}
inline void store_half(float value, std::byte* at) {
  const std::uint16_t bits = half_of_float(value);
  std::memcpy(at, &bits, 2);
}
// Byte i holds value i in its low and value i + 16 in its high nibble.
inline int low_nibble(std::byte b) {
  return std::to_integer<int>(b) & 15;
}
inline int high_nibble(std::byte b) {
  return std::to_integer<int>(b) >> 4;
}
// Truncates to 0..15; a NaN becomes 0.
inline std::byte nibbles(float low, float high) {
  const auto q = [](float x) { return x > 0 ? static_cast<int>((std::min)(x, 15.0f)) : 0; };
  return static_cast<std::byte>(q(low) | q(high) << 4);
}
}  // namespace detail

// half d; 32 int8: x = d q.
struct Q8_0 {
  static constexpr std::string_view name = "q8_0";
  static constexpr int ggml_type = 8;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 34;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      float largest = 0, poison = 0;  // poison: NaN as soon as one value is not finite
      for (Dim i = 0; i < block; ++i) {
        largest = (std::max)(largest, std::fabs(x[i]));
        poison += x[i] - x[i];
      }
      const float d = largest / 127.0f + poison;
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      detail::store_half(d, to);
      for (Dim i = 0; i < block; ++i) {
        const float q = std::round(x[i] * inverse);  // NaN compares false and becomes 0
        to[2 + i] = static_cast<std::byte>(
            q >= -127.0f ? static_cast<std::int8_t>((std::min)(q, 127.0f)) : std::int8_t{0});
      }
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from);
      for (Dim i = 0; i < block; ++i) {
        x[i] = d * static_cast<float>(static_cast<std::int8_t>(from[2 + i]));
      }
    }
  }
};

// half d; 16 bytes of two nibbles: x = d (q - 8).
struct Q4_0 {
  static constexpr std::string_view name = "q4_0";
  static constexpr int ggml_type = 2;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 18;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      const float peak = detail::signed_peak(x, block);
      const float d = peak / -8.0f;
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      detail::store_half(d, to);
      for (Dim i = 0; i < 16; ++i) {
        to[2 + i] = detail::nibbles(detail::multiply_then_add(x[i], inverse, 8.5f),
                                    detail::multiply_then_add(x[i + 16], inverse, 8.5f));
      }
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from);
      for (Dim i = 0; i < 16; ++i) {
        x[i] = d * static_cast<float>(detail::low_nibble(from[2 + i]) - 8);
        x[i + 16] = d * static_cast<float>(detail::high_nibble(from[2 + i]) - 8);
      }
    }
  }
};

// half d, half m; 16 bytes of two nibbles: x = d q + m.
struct Q4_1 {
  static constexpr std::string_view name = "q4_1";
  static constexpr int ggml_type = 3;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 20;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      const auto [low, high] = std::minmax_element(x, x + block);
      const float d = (*high - *low) / 15.0f;
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      detail::store_half(d, to);
      detail::store_half(*low, to + 2);
      for (Dim i = 0; i < 16; ++i) {
        const float a = x[i] - *low, b = x[i + 16] - *low;
        to[4 + i] = detail::nibbles(detail::multiply_then_add(a, inverse, 0.5f),
                                    detail::multiply_then_add(b, inverse, 0.5f));
      }
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from), m = detail::load_half(from + 2);
      for (Dim i = 0; i < 16; ++i) {
        x[i] = std::fma(d, static_cast<float>(detail::low_nibble(from[4 + i])), m);
        x[i + 16] = std::fma(d, static_cast<float>(detail::high_nibble(from[4 + i])), m);
      }
    }
  }
};

}  // namespace tenon::inline TENON_ABI
