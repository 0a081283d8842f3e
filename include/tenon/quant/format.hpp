#pragma once
// The contract of a number format: how floats become blocks of bytes and back.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "../core/memory.hpp"
#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// A format stores `block` consecutive values in `block_bytes` bytes. encode and decode work on
// whole blocks: n is a multiple of `block`. decode is exact up to one float rounding per value. One
// that checkpoints store weights in also has `static constexpr int ggml_type`, its number in GGUF.
template <class F>
concept Format = requires(const float* in, float* out, const std::byte* from, std::byte* to,
                          Dim n) {
  { F::name } -> std::convertible_to<std::string_view>;
  { F::block } -> std::convertible_to<Dim>;
  { F::block_bytes } -> std::convertible_to<std::size_t>;
  F::encode(in, n, to);
  F::decode(from, n, out);
};

// One static_assert per clause, so that a format that misses one is told which.
template <class F>
consteval bool explain_format() {
  static_assert(
      requires {
        { F::name } -> std::convertible_to<std::string_view>;
      },
      "tenon: a Format must provide `static constexpr std::string_view name`");
  static_assert(
      requires {
        { F::block } -> std::convertible_to<Dim>;
        { F::block_bytes } -> std::convertible_to<std::size_t>;
      },
      "tenon: a Format must provide `static constexpr Dim block` (values) and `std::size_t "
      "block_bytes`");
  static_assert(
      requires(const float* x, Dim n, std::byte* to) { F::encode(x, n, to); },
      "tenon: a Format must provide `static void encode(const float*, Dim n, std::byte*)`");
  static_assert(
      requires(const std::byte* from, Dim n, float* x) { F::decode(from, n, x); },
      "tenon: a Format must provide `static void decode(const std::byte*, Dim n, float*)`");
  return true;
}

// The format as whose blocks the kernels keep F's in memory: F itself, or `F::packed`, into which
// `F::repack(const std::byte* block, std::byte* to)` writes the same numbers as F::block values.
template <class F>
struct PackedForm {
  using type = F;
};
template <class F>
requires requires {
  typename F::packed;
}
struct PackedForm<F> {
  using type = typename F::packed;
  static_assert(F::block % type::block == 0);
};
template <class F>
using packed_form = typename PackedForm<F>::type;

// Bytes of a row of n values; the last block of a row may be partly filled.
template <Format F>
constexpr std::size_t row_bytes(Dim n) {
  return static_cast<std::size_t>(ceil_div(n, F::block)) * F::block_bytes;
}

// Encodes n values, any n: a last partial block is filled up with zeros.
template <Format F>
void encode_row(const float* values, Dim n, std::byte* row) {
  const Dim whole = n / F::block * F::block;
  if (whole > 0) F::encode(values, whole, row);
  if (whole == n) return;
  float last[F::block] = {};
  for (Dim i = whole; i < n; ++i) last[i - whole] = values[i];
  F::encode(last, F::block, row + row_bytes<F>(whole));
}

// Decodes values [first, first + n) of a row, any first and n.
template <Format F>
void decode_part(const std::byte* row, Dim first, Dim n, float* values) {
  row += static_cast<std::size_t>(first / F::block) * F::block_bytes;
  Dim skip = first % F::block;
  if (skip == 0 && n >= F::block) {
    const Dim whole = n / F::block * F::block;
    F::decode(row, whole, values);
    row += row_bytes<F>(whole);
    values += whole;
    n -= whole;
  }
  float block[F::block];
  for (; n > 0; row += F::block_bytes, skip = 0) {
    F::decode(row, F::block, block);
    for (; skip < F::block && n > 0; ++skip, --n) *values++ = block[skip];
  }
}

}  // namespace tenon::inline TENON_ABI
