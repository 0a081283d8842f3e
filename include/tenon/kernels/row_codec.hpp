#pragma once
// Cache rows to floats and back, through the instruction set's conversions where there are some.
#include <concepts>
#include <cstring>

#include "../quant/any_of.hpp"
#include "../quant/blocks.hpp"
#include "../quant/dense.hpp"
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
  } else if constexpr (std::same_as<F, Q8_0>) {
    for (Dim done = 0; done < n;) {
      const Dim at = first + done;
      const Dim within = at % Q8_0::block;
      const Dim some = (std::min)(n - done, Q8_0::block - within);
      const std::byte* block = row + static_cast<std::size_t>(at / Q8_0::block) * Q8_0::block_bytes;
      ops.widen_bytes(reinterpret_cast<const std::int8_t*>(block + 2) + within, some,
                      detail::load_half(block), values + done);
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
  bool floats = false;  // rows are floats already and can be read where they lie
};
template <Format F>
inline constexpr RowCodec row_codec{store_row<F>, load_row<F>, std::same_as<F, F32>};

// The codec of the format with this tag.
template <class Formats>
const RowCodec& row_codec_of(int tag) {
  return FormatList<Formats>::visit(tag,
                                    []<class F>(F) -> const RowCodec& { return row_codec<F>; });
}

}  // namespace tenon::inline TENON_ABI
