#pragma once
// Formats without blocks: one number, one value.
#include <cstring>

#include "format.hpp"
#include "half.hpp"

namespace tenon::inline TENON_ABI {

struct F32 {
  static constexpr std::string_view name = "f32";
  static constexpr int ggml_type = 0;
  static constexpr Dim block = 1;
  static constexpr std::size_t block_bytes = 4;
  static void encode(const float* x, Dim n, std::byte* to) {
    std::memcpy(to, x, static_cast<std::size_t>(n) * 4);
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    std::memcpy(x, from, static_cast<std::size_t>(n) * 4);
  }
};

namespace detail {
template <std::uint16_t (*Narrow)(float), float (*Widen)(std::uint16_t)>
struct SixteenBit {
  static constexpr Dim block = 1;
  static constexpr std::size_t block_bytes = 2;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (Dim i = 0; i < n; ++i) {
      const std::uint16_t bits = Narrow(x[i]);
      std::memcpy(to + 2 * i, &bits, 2);
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (Dim i = 0; i < n; ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, from + 2 * i, 2);
      x[i] = Widen(bits);
    }
  }
};
}  // namespace detail

struct F16 : detail::SixteenBit<half_of_float, float_of_half> {
  static constexpr std::string_view name = "f16";
  static constexpr int ggml_type = 1;
};
struct Bf16 : detail::SixteenBit<bf16_of_float, float_of_bf16> {
  static constexpr std::string_view name = "bf16";
  static constexpr int ggml_type = 30;
};

}  // namespace tenon::inline TENON_ABI
