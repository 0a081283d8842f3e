#pragma once
// What a linear layer multiplies its weights with: the float activations themselves, or the same
// quantized to int8 once per token and 32 values, so that block formats multiply in integers.
#include <cstddef>
#include <cstdint>

#include "../core/memory.hpp"
#include "../core/types.hpp"
#include "isa.hpp"

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

using QuantizeRow = void (*)(const float* x, Dim in, std::int8_t* values, float* scales,
                             std::int32_t* sums);

// The leaf that quantizes one row [in] of activations.
QuantizeRow quantize_row(Isa isa);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "activations.inl"
#endif
