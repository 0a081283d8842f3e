#pragma once
// NVFP4 (ggml type 40): four-bit floats, sixteen at a time under an eight-bit one.
#include <algorithm>
#include <bit>
#include <cmath>

#include "bit_planes.hpp"
#include "blocks.hpp"
#include "format.hpp"
#include "mxfp4.hpp"
#include "rounding.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// Half of the unsigned E4M3 number whose code is `code`: what doubled elements are multiplied by.
// As in ggml the top bit is ignored, but for 0x7f, which is 0.
inline float half_e4m3(int code) {
  if (code == 0x7f) return 0;
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}
// A code of a value of half_e4m3().
inline int code_of_half_e4m3(float half) {
  const auto bits = std::bit_cast<std::uint32_t>(half);
  const int exponent = static_cast<int>(bits >> 23) - 119;
  if (exponent <= 0) return static_cast<int>(half * 1024);
  const int code = exponent << 3 | static_cast<int>(bits >> 20 & 7);
  return code == 0x7f ? 0xff : code;  // 480, which only the code with the top bit stands for
}
// The code of an unsigned E4M3 number as ggml rounds to it: half a step goes up; what is beyond 248
// becomes 448, NaN and what is not positive 0.
inline int e4m3_code(float x) {
  if (!(x > 0)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>((std::min)(x, 448.0f));
  const int exponent = static_cast<int>(bits >> 23) - 120;
  if (exponent <= 0) return (std::min)(static_cast<int>(multiply_then_add(x, 512.0f, 0.5f)), 7);
  if (exponent >= 15) return 0x7e;
  // Mantissa and exponent side by side, so that a carry goes where it belongs.
  const int code =
      (exponent << 3 | static_cast<int>(bits >> 20 & 7)) + static_cast<int>(bits >> 19 & 1);
  return code >= 15 << 3 ? 0x7e : code;
}
}  // namespace detail

// Four bytes of scales; four times 8 bytes of two nibbles, value i of sixteen in the low and i + 8
// in the high one of byte i: x = E4M3(scale) E2M1(nibble). encode puts a group's peak on 6 and
// takes the nearest element, of two the smaller magnitude. Scales reach 448 and have no NaN, so a
// group that is beyond that, or no number, becomes the nearest there is.
struct Nvfp4 {
  static constexpr std::string_view name = "nvfp4";
  static constexpr int ggml_type = 40;
  static constexpr Dim block = 64;
  static constexpr std::size_t block_bytes = 36;
  static constexpr Dim group = 16;

  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      for (Dim g = 0; g < block / group; ++g) {
        const float* values = x + g * group;
        const int scale = detail::e4m3_code(std::fabs(detail::signed_peak(values, group)) / 6.0f);
        to[g] = static_cast<std::byte>(scale);
        const float d = detail::half_e4m3(scale);
        for (Dim i = 0; i < 8; ++i) {
          to[4 + g * 8 + i] =
              static_cast<std::byte>(code_of(values[i], d) | code_of(values[i + 8], d) << 4);
        }
      }
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      for (Dim g = 0; g < block / group; ++g) {
        const float d = detail::half_e4m3(std::to_integer<int>(from[g]));
        std::uint8_t codes[group] = {};
        read_codes(from, g, codes);
        for (Dim i = 0; i < group; ++i) {
          x[g * group + i] = d * static_cast<float>(detail::doubled_element(codes[i]));
        }
      }
    }
  }
  // The codes of group g of a block, and back; codes and bytes must be zero before.
  static void read_codes(const std::byte* from, Dim g, std::uint8_t* codes) {
    detail::BitPlane<4, 8>::read(from + 4 + 8 * g, group, codes);
  }
  static void write_codes(const std::uint8_t* codes, Dim g, std::byte* to) {
    detail::BitPlane<4, 8>::write(codes, group, to + 4 + 8 * g);
  }

 private:
  static int code_of(float x, float d) {
    int code = 0;
    float least = std::fabs(x);
    for (int c = 1; c < 16; ++c) {
      const float error = std::fabs(
          detail::multiply_then_add(static_cast<float>(detail::doubled_element(c)), d, -x));
      if (error < least) {
        least = error;
        code = c;
      }
    }
    return code;
  }
};

}  // namespace tenon::inline TENON_ABI
