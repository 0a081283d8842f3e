#pragma once
// MXFP4 (OCP Microscaling Formats 1.0; ggml type 39): 32 four-bit floats under one power of two.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "blocks.hpp"
#include "format.hpp"

namespace tenon::inline TENON_ABI {

// What an encoder makes of a value halfway between two elements: the smaller magnitude, as ggml
// does, or the one with an even significand, as OCP asks.
enum class HalfWay { toward_zero, to_even };

namespace detail {
// The E2M1 numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 doubled, by the code's low three bits; bit 3 is the
// sign.
inline constexpr int e2m1_doubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};
constexpr int doubled_element(int code) {
  const int magnitude = e2m1_doubled[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}
// 2^(exponent - 128): half the E8M0 scale, what doubled elements are multiplied by. 255 is NaN.
constexpr float half_scale_of(std::uint8_t exponent) {
  if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t tiny = 0x00200000u << (exponent & 1u);  // 2^-128, 2^-127: subnormal
  return std::bit_cast<float>(exponent < 2 ? tiny : (exponent - 1u) << 23);
}
}  // namespace detail

// u8 exponent e; 16 bytes of two nibbles, value i in the low and i + 16 in the high one of byte i:
// x = 2^(e - 127) E2M1(nibble). encode takes the largest power of two under which the block's peak
// is at least 4; what is beyond 6 then becomes 6. A block that holds a NaN or an infinity becomes
// NaN. A negative zero decodes to zero, as in ggml.
template <HalfWay Ties>
struct Mxfp4Of {
  static constexpr std::string_view name = "mxfp4";
  static constexpr int ggml_type = 39;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 17;

  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      const std::uint8_t exponent = exponent_of(x);
      to[0] = static_cast<std::byte>(exponent);
      for (Dim i = 0; i < 16; ++i) {
        to[1 + i] =
            static_cast<std::byte>(code_of(x[i], exponent) | code_of(x[i + 16], exponent) << 4);
      }
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::half_scale_of(std::to_integer<std::uint8_t>(from[0]));
      for (Dim i = 0; i < 16; ++i) {
        const auto element = [](int code) {
          return static_cast<float>(detail::doubled_element(code));
        };
        x[i] = d * element(detail::low_nibble(from[1 + i]));
        x[i + 16] = d * element(detail::high_nibble(from[1 + i]));
      }
    }
  }

 private:
  static std::uint8_t exponent_of(const float* x) {
    float peak = 0, poison = 0;  // poison: NaN as soon as one value is not finite
    for (Dim i = 0; i < block; ++i) {
      peak = (std::max)(peak, std::fabs(x[i]));
      poison += x[i] - x[i];
    }
    if (poison != 0) return 255;
    if (peak == 0) return 0;
    return static_cast<std::uint8_t>((std::max)(std::ilogb(peak) - 2 + 127, 0));
  }
  static int code_of(float x, std::uint8_t exponent) {
    if (exponent == 255) return 0;
    // Exact, and in double also where the scale is subnormal.
    const double doubled = std::ldexp(std::fabs(static_cast<double>(x)), 128 - exponent);
    int code = 0;
    for (; code < 7; ++code) {
      const double middle = 0.5 * (detail::e2m1_doubled[code] + detail::e2m1_doubled[code + 1]);
      const bool stays =
          Ties == HalfWay::toward_zero || code % 2 == 0 ? doubled <= middle : doubled < middle;
      if (stays) break;
    }
    return code != 0 && x < 0 ? code | 8 : code;
  }
};
using Mxfp4 = Mxfp4Of<HalfWay::toward_zero>;

}  // namespace tenon::inline TENON_ABI
