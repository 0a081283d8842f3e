#pragma once
// Transposes of small numbers from rows of a file to the lanes of a tile, in registers.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// The vectors that every compiler of the library has without a flag.
using FourWords = std::uint32_t __attribute__((vector_size(16)));
using EightHalves = std::uint16_t __attribute__((vector_size(16)));

template <class Vector>
inline Vector load_vector(const std::byte* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class Vector>
inline void store_vector(std::byte* to, Vector v) {
  std::memcpy(to, &v, sizeof(v));
}
struct EightRows {
  EightHalves a, b, c, d, e, f, g, h;
};
inline EightHalves low_halves(EightHalves a, EightHalves b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
inline EightHalves high_halves(EightHalves a, EightHalves b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
inline EightRows interleave(const EightRows& v) {
  return {low_halves(v.a, v.e), high_halves(v.a, v.e), low_halves(v.b, v.f), high_halves(v.b, v.f),
          low_halves(v.c, v.g), high_halves(v.c, v.g), low_halves(v.d, v.h), high_halves(v.d, v.h)};
}
}  // namespace detail

// Word j of row r, 0 <= r < 16, goes to to[j][r] with `flip` applied: rows of `words` words of four
// bytes, words a multiple of 4, `stride` bytes apart; `to` is [words, 16].
inline void transpose_words(const std::byte* rows, std::size_t stride, std::size_t words,
                            std::uint32_t flip, std::byte* to) {
  using detail::FourWords;
  const FourWords mask{flip, flip, flip, flip};
  for (std::size_t j = 0; j < words; j += 4) {
    for (std::size_t r = 0; r < 16; r += 4) {
      const std::byte* at = rows + r * stride + 4 * j;
      const auto a = detail::load_vector<FourWords>(at);
      const auto b = detail::load_vector<FourWords>(at + stride);
      const auto c = detail::load_vector<FourWords>(at + 2 * stride);
      const auto d = detail::load_vector<FourWords>(at + 3 * stride);
      const FourWords ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) ^ mask;
      const FourWords cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) ^ mask;
      const FourWords ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7) ^ mask;
      const FourWords cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7) ^ mask;
      std::byte* out = to + (j * 16 + r) * 4;
      detail::store_vector(out, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
      detail::store_vector(out + 64, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
      detail::store_vector(out + 128, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      detail::store_vector(out + 192, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
  }
}

// The same of numbers of two bytes: rows of `halves` of them, a multiple of 8.
inline void transpose_halves(const std::byte* rows, std::size_t stride, std::size_t halves,
                             std::byte* to) {
  using detail::EightHalves;
  for (std::size_t j = 0; j < halves; j += 8) {
    for (std::size_t r = 0; r < 16; r += 8) {
      const std::byte* at = rows + r * stride + 2 * j;
      const auto row = [&](std::size_t i) {
        return detail::load_vector<EightHalves>(at + i * stride);
      };
      // Each of the three passes interleaves the rows i and i + 4; then rows are columns.
      std::byte* out = to + (j * 16 + r) * 2;
      const auto columns = detail::interleave(detail::interleave(
          detail::interleave({row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)})));
      detail::store_vector(out, columns.a);
      detail::store_vector(out + 32, columns.b);
      detail::store_vector(out + 64, columns.c);
      detail::store_vector(out + 96, columns.d);
      detail::store_vector(out + 128, columns.e);
      detail::store_vector(out + 160, columns.f);
      detail::store_vector(out + 192, columns.g);
      detail::store_vector(out + 224, columns.h);
    }
  }
}

}  // namespace tenon::inline TENON_ABI
