#pragma once
// The two 8-bit floats of the OCP "8-bit Floating Point Specification" 1.0: E4M3 for values, E5M2
// where range matters more.
#include <array>
#include <bit>

#include "format.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// Rounds to nearest, ties to even; what is larger than the largest finite number (code Largest),
// infinity too, becomes it, with its sign; a NaN becomes 0x7f. E4M3 has no infinity and one NaN.
template <int Mantissa, int Bias, int Largest>
struct EightBit {
  static constexpr Dim block = 1;
  static constexpr std::size_t block_bytes = 1;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (Dim i = 0; i < n; ++i) to[i] = static_cast<std::byte>(code_of(x[i]));
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    static constexpr std::array<float, 256> values = [] {
      std::array<float, 256> all{};
      for (std::size_t code = 0; code < 256; ++code) all[code] = value_of(static_cast<int>(code));
      return all;
    }();
    for (Dim i = 0; i < n; ++i) x[i] = values[std::to_integer<std::size_t>(from[i])];
  }

  static constexpr int code_of(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const int sign = static_cast<int>(bits >> 24 & 0x80u);
    if (magnitude > 0x7f800000u) return 0x7f;
    if (magnitude >= std::bit_cast<std::uint32_t>(value_of(Largest))) return sign | Largest;
    constexpr int drop = 23 - Mantissa;
    if (magnitude < static_cast<std::uint32_t>(128 - Bias) << 23) {
      // Subnormal: adding a number whose last place is their unit rounds to it.
      constexpr std::uint32_t aligned = static_cast<std::uint32_t>(128 - Bias + drop) << 23;
      const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(aligned);
      return sign | static_cast<int>(std::bit_cast<std::uint32_t>(sum) - aligned);
    }
    const std::uint32_t half_down = (1u << (drop - 1)) - 1;
    const std::uint32_t rounded = magnitude + half_down + (magnitude >> drop & 1u);
    return sign | static_cast<int>((rounded >> drop) -
                                   (static_cast<std::uint32_t>(127 - Bias) << Mantissa));
  }
  static constexpr float value_of(int code) {
    const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80) << 24;
    const int magnitude = code & 0x7f;
    if (magnitude > Largest) {  // E5M2's infinity, and NaNs
      const bool infinite = magnitude == Largest + 1 && magnitude != 0x7f;
      return std::bit_cast<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    const int exponent = magnitude >> Mantissa, fraction = magnitude & ((1 << Mantissa) - 1);
    if (exponent == 0) {  // `fraction` units of 2^(1 - Bias - Mantissa), exact
      const std::uint32_t unit = static_cast<std::uint32_t>(128 - Bias - Mantissa) << 23;
      const float value = static_cast<float>(fraction) * std::bit_cast<float>(unit);
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | static_cast<std::uint32_t>(exponent + 127 - Bias) << 23 |
                                static_cast<std::uint32_t>(fraction) << (23 - Mantissa));
  }
};

}  // namespace detail

// Largest 448, smallest positive 2^-9.
struct Fp8E4M3 : detail::EightBit<3, 7, 0x7e> {
  static constexpr std::string_view name = "fp8_e4m3";
};
// Largest 57344, smallest positive 2^-16.
struct Fp8E5M2 : detail::EightBit<2, 15, 0x7b> {
  static constexpr std::string_view name = "fp8_e5m2";
};

}  // namespace tenon::inline TENON_ABI
