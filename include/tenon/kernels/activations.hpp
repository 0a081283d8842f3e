#pragma once
// What a linear layer multiplies its weights with: the float activations themselves, or the same
// quantized to int8 once per token and 32 values, so that block formats multiply in integers.
#include <cstring>
#include <limits>

#include "../core/memory.hpp"
#include "../core/types.hpp"
#include "isa.hpp"
#include "lanes_avx2.hpp"
#include "lanes_avx512.hpp"
#include "lanes_scalar.hpp"

namespace tenon::inline TENON_ABI {

// int8 applies to block formats only; dense weights always take the floats.
enum class Activations { int8, f32 };

// Activations as int8: x[t][k] is scales[t][k / 32] * values[t][k]. A view; memory comes from the
// caller: QuantizedRows::carve(work.take<std::byte>(QuantizedRows::bytes(tokens, in)), tokens, in).
struct QuantizedRows {
  static constexpr Dim block = 32;
  std::int8_t* values = nullptr;  // [tokens][blocks * 32]; the last block filled up with zeros
  float* scales = nullptr;        // [tokens][blocks]
  std::int32_t* sums = nullptr;   // [tokens][blocks] sums of the values
  Dim blocks = 0;

  static Dim bytes(Dim tokens, Dim in) {
    const Dim blocks = ceil_div(in, block);
    return round_up(tokens * blocks * block, Dim{cache_line}) +
           2 * round_up(tokens * blocks * Dim{4}, Dim{cache_line});
  }
  // Divides `memory` of bytes(tokens, in); null (a measuring workspace) gives an empty view.
  static QuantizedRows carve(std::byte* memory, Dim tokens, Dim in) {
    QuantizedRows rows;
    if (memory == nullptr) return rows;
    rows.blocks = ceil_div(in, block);
    const Dim each = round_up(tokens * rows.blocks * Dim{4}, Dim{cache_line});
    rows.scales = reinterpret_cast<float*>(memory);
    rows.sums = reinterpret_cast<std::int32_t*>(memory + each);
    rows.values = reinterpret_cast<std::int8_t*>(memory + 2 * each);
    return rows;
  }
  // The same rows from token t and block b on.
  QuantizedRows at(Dim t, Dim b) const {
    const Dim skip = t * blocks + b;
    return {values + skip * block, scales + skip, sums + skip, blocks};
  }
};

}  // namespace tenon::inline TENON_ABI

#define TENON_LEAF_FILE "activation_leaves.inl"
#include "for_each_isa.inl"

namespace tenon::inline TENON_ABI {

using QuantizeRow = void (*)(const float* x, Dim in, std::int8_t* values, float* scales,
                             std::int32_t* sums);

// The leaf that quantizes one row [in] of activations.
inline QuantizeRow quantize_row(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512 || isa == Isa::avx512vnni) return avx512::quantize_row;
  if (isa == Isa::avx2) return avx2::quantize_row;
#endif
  static_cast<void>(isa);
  return scalar::quantize_row;
}

}  // namespace tenon::inline TENON_ABI
