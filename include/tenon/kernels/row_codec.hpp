#pragma once
// Cache rows to floats and back, through the instruction set's conversions where there are some.
#include <concepts>
#include <cstring>

#include "../quant/any_of.hpp"
#include "../quant/blocks.hpp"
#include "../quant/dense.hpp"
#include "attention_ops.hpp"
#include "row_ops.hpp"

namespace tenon::inline TENON_ABI {

// Stores n floats as a row of F; a last partial block is filled up with zeros.
template <Format F>
void store_row(const RowOps& ops, const float* values, Dim n, std::byte* row) {
  if constexpr (std::same_as<F, F16>) {
    ops.narrow_to_half(values, n, reinterpret_cast<std::uint16_t*>(row));
  } else {
    encode_row<F>(values, n, row);
  }
}

// Loads values [first, first + n) of a row of F.
template <Format F>
void load_row(const RowOps& ops, const std::byte* row, Dim first, Dim n, float* values) {
  if constexpr (std::same_as<F, F16>) {
    ops.widen_half(reinterpret_cast<const std::uint16_t*>(row) + first, n, values);
  } else if constexpr (std::same_as<F, Bf16>) {
    ops.widen_bf16(reinterpret_cast<const std::uint16_t*>(row) + first, n, values);
  } else if constexpr (std::same_as<F, Q8_0> || std::same_as<F, Q4_0>) {
    for (Dim done = 0; done < n;) {
      const Dim at = first + done;
      const Dim within = at % F::block;
      const Dim some = (std::min)(n - done, F::block - within);
      const std::byte* block = row + static_cast<std::size_t>(at / F::block) * F::block_bytes;
      std::int8_t unpacked[F::block];
      const std::int8_t* bytes = reinterpret_cast<const std::int8_t*>(block + 2);
      if constexpr (std::same_as<F, Q4_0>) {
        for (int i = 0; i < 16; ++i) {
          unpacked[i] = static_cast<std::int8_t>(detail::low_nibble(block[2 + i]) - 8);
          unpacked[i + 16] = static_cast<std::int8_t>(detail::high_nibble(block[2 + i]) - 8);
        }
        bytes = unpacked;
      }
      ops.widen_bytes(bytes + within, some, detail::load_half(block), values + done);
      done += some;
    }
  } else {
    decode_part<F>(row, first, n, values);
  }
}

// The two conversions of one format as functions, so that code which moves rows is compiled once
// for all formats.
struct RowCodec {
  void (*store)(const RowOps& ops, const float* values, Dim n, std::byte* row);
  void (*load)(const RowOps& ops, const std::byte* row, Dim first, Dim n, float* values);
  TileElements elements = TileElements::none;  // how attention reads such rows where they lie
};
template <Format F>
inline constexpr TileElements tile_elements = std::same_as<F, F32>    ? TileElements::f32
                                              : std::same_as<F, F16>  ? TileElements::f16
                                              : std::same_as<F, Bf16> ? TileElements::bf16
                                              : std::same_as<F, Q8_0> ? TileElements::q8_0
                                                                      : TileElements::none;
template <Format F>
inline constexpr RowCodec row_codec{store_row<F>, load_row<F>, tile_elements<F>};

// The codec of the format with this tag.
template <class Formats>
const RowCodec& row_codec_of(int tag) {
  return FormatList<Formats>::visit(tag,
                                    []<class F>(F) -> const RowCodec& { return row_codec<F>; });
}

}  // namespace tenon::inline TENON_ABI
