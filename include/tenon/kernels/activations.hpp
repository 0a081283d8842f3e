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

// At most sixteen tokens as int8, a block of 32 values of all of them side by side: x[t][k] is
// scales[k / 32][t] * values[k / 32][t][k % 32]. A block of sixteen is one tile of the matrix unit
// where there is one, and one stream of reads everywhere. Leaves read on behind the last token, by
// at most QuantizedRows::slack entries of each array.
struct QuantizedGroup {
  static constexpr Dim most = 16;
  std::int8_t* values = nullptr;  // [blocks][count][32]; the last block filled up with zeros
  float* scales = nullptr;        // [blocks][count]
  std::int32_t* sums = nullptr;   // [blocks][count] sums of the values
  std::int32_t* heads = nullptr;  // [blocks][count] sums of the first 16 of them
  Dim count = 0;

  // The same tokens from block b on.
  QuantizedGroup from_block(Dim b) const {
    const Dim skip = b * count;
    return {values + skip * 32, scales + skip, sums + skip, heads + skip, count};
  }
  // The same blocks of tokens t and later; `count` stays the stride.
  QuantizedGroup from_token(Dim t) const {
    return {values + t * 32, scales + t, sums + t, heads + t, count};
  }
};

// Rows of activations as int8, cut into groups from a row on that its user chooses. A view; memory
// comes from the caller: QuantizedRows::carve(work.take<std::byte>(QuantizedRows::bytes(tokens,
// in)), tokens, in).
struct QuantizedRows {
  static constexpr Dim block = 32;
  // Entries behind the last, each of one token and block, that leaves may read, whatever is there.
  static constexpr Dim slack = 7;
  QuantizedGroup all;
  Dim blocks = 0;

  static Dim bytes(Dim tokens, Dim in) {
    const Dim blocks = ceil_div(in, block);
    return round_up((tokens * blocks + slack) * block, Dim{cache_line}) +
           3 * round_up((tokens * blocks + slack) * Dim{4}, Dim{cache_line});
  }
  // Divides `memory` of bytes(tokens, in); null (a measuring workspace) gives an empty view.
  static QuantizedRows carve(std::byte* memory, Dim tokens, Dim in) {
    QuantizedRows rows;
    if (memory == nullptr) return rows;
    rows.blocks = ceil_div(in, block);
    const Dim each = round_up((tokens * rows.blocks + slack) * Dim{4}, Dim{cache_line});
    rows.all = {reinterpret_cast<std::int8_t*>(memory + 3 * each), reinterpret_cast<float*>(memory),
                reinterpret_cast<std::int32_t*>(memory + each),
                reinterpret_cast<std::int32_t*>(memory + 2 * each), tokens};
    return rows;
  }
  // Row `first` and later ones as if they were all.
  QuantizedRows from(Dim first) const {
    if (all.values == nullptr) return *this;
    const Dim skip = first * blocks;
    return {{all.values + skip * block, all.scales + skip, all.sums + skip, all.heads + skip,
             all.count - first},
            blocks};
  }
  // The group of `count` rows that starts at row `first`.
  QuantizedGroup group(Dim first, Dim count) const {
    QuantizedGroup of = from(first).all;
    of.count = count;
    return of;
  }
};

// The leaf that quantizes one row [in] of activations as token `token` of a group.
using QuantizeRow = void (*)(const float* x, Dim in, const QuantizedGroup& to, Dim token);
QuantizeRow quantize_row(Isa isa);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "activations.inl"
#endif
