#pragma once
// 16-bit floats as bits. Conversions to 16 bits round to nearest, ties to even.
#include <bit>
#include <cstdint>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

constexpr float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN: keep the payload, make it quiet as hardware does
    const std::uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13) | quiet);
  }
  if (magnitude < 0x400u) {  // zero or subnormal: magnitude units of 2^-24, exact in float
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

constexpr std::uint16_t half_of_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 aligns the ulp with 2^-24 and rounds
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t units = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
    return static_cast<std::uint16_t>(sign | units);
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

constexpr float float_of_bf16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

constexpr std::uint16_t bf16_of_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace tenon::inline TENON_ABI
