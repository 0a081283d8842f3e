#pragma once
// The five-bit formats of GGUF with 32 values to a block: Q5_0, Q5_1. The low four bits of a code
// lie as in Q4_0, the fifth bits of all of them in four bytes before. encode gives the reference
// quantizer's bytes; a block it cannot express (see beyond_blocks) becomes NaN.
#include <algorithm>
#include <cmath>

#include "bit_planes.hpp"
#include "blocks.hpp"
#include "encode_blocks.hpp"
#include "format.hpp"
#include "rounding.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// A float in [0, 32) truncated to an integer, what is outside to the next bound.
inline std::uint8_t five_bits(float x) {
  return static_cast<std::uint8_t>(x > 0 ? (std::min)(x, 31.0f) : 0.0f);
}
inline void read_five_bits(const std::byte* from, std::uint8_t* codes) {
  BitPlane<1, 1>::read<4>(from, 32, codes);
  BitPlane<4, 16>::read(from + 4, 32, codes);
}
inline void write_five_bits(const std::uint8_t* codes, std::byte* to) {
  BitPlane<1, 1>::write<4>(codes, 32, to);
  BitPlane<4, 16>::write(codes, 32, to + 4);
}
}  // namespace detail

// half d; 4 bytes of fifth bits; 16 bytes of nibbles: x = d (q - 16).
struct Q5_0 {
  static constexpr std::string_view name = "q5_0";
  static constexpr int ggml_type = 6;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 22;
  static void encode(const float* x, Dim n, std::byte* to) {
    detail::encode_blocks<block, block_bytes>(x, n, to, 0, [](const float* values, std::byte* at) {
      const float peak = detail::signed_peak(values, block);
      const float d = peak / -16.0f;
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      std::uint8_t codes[block];
      for (Dim i = 0; i < block; ++i) {
        codes[i] = detail::five_bits(detail::multiply_then_add(values[i], inverse, 16.5f));
      }
      detail::store_half(d, at);
      detail::write_five_bits(codes, at + 2);
    });
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from);
      std::uint8_t codes[block] = {};
      detail::read_five_bits(from + 2, codes);
      for (Dim i = 0; i < block; ++i) x[i] = d * static_cast<float>(codes[i] - 16);
    }
  }
};

// half d, half m; 4 bytes of fifth bits; 16 bytes of nibbles: x = d q + m.
struct Q5_1 {
  static constexpr std::string_view name = "q5_1";
  static constexpr int ggml_type = 7;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 24;
  static void encode(const float* x, Dim n, std::byte* to) {
    detail::encode_blocks<block, block_bytes>(x, n, to, 0, [](const float* values, std::byte* at) {
      const auto [low, high] = std::minmax_element(values, values + block);
      const float d = (*high - *low) / 31.0f;
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      std::uint8_t codes[block];
      for (Dim i = 0; i < block; ++i) {
        codes[i] = detail::five_bits(detail::multiply_then_add(values[i] - *low, inverse, 0.5f));
      }
      detail::store_half(d, at);
      detail::store_half(*low, at + 2);
      detail::write_five_bits(codes, at + 4);
    });
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from), m = detail::load_half(from + 2);
      std::uint8_t codes[block] = {};
      detail::read_five_bits(from + 4, codes);
      // d has 11 significant bits and q five: the product is exact, so fusing it changes nothing.
      for (Dim i = 0; i < block; ++i) x[i] = d * static_cast<float>(codes[i]) + m;
    }
  }
};

}  // namespace tenon::inline TENON_ABI
