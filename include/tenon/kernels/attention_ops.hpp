#pragma once
// The arithmetic of attention over one tile of keys, chosen by instruction set.
#include <cstdint>

#include "../core/types.hpp"
#include "isa.hpp"

namespace tenon::inline TENON_ABI {

// Keys are folded into a softmax in tiles that start at multiples of this many rows, whatever the
// cache's own layout: it is what makes every layout, chunking and batch give the same bits.
inline constexpr int key_tile = 64;

struct AttentionOps {
  // rows [row][dim] at `stride` floats -> keys [dim][key_tile], rows [low, high).
  void (*transpose_keys)(const float* rows, Dim stride, int low, int high, Dim dim, float* keys);
  // queries [count][dim] -> scores [count][key_tile].
  void (*score)(const float* queries, int count, const float* keys, int low, int high, Dim dim,
                float* scores);
  // One query's scores [key_tile] -> weights; bit i of `keep`: key i counts. Returns the factor
  // by which the output so far must be scaled.
  float (*soften)(float* scores, std::uint64_t keep, float* maximum, float* denominator);
  // outputs [count][dim] += weights [count][key_tile] x values [row][dim at `stride`].
  void (*accumulate)(const float* weights, const float* factors, int count, std::uint64_t keep,
                     const float* values, Dim stride, Dim dim, float* outputs);
  void (*merge_outputs)(float* into, float a, const float* from, float b, Dim dim);
  void (*divide)(const float* x, float divisor, Dim dim, float* y);
  float (*exponential_of)(float x);
};

// The operations for an instruction set that this machine supports.
const AttentionOps& attention_ops(Isa isa);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "attention_ops.inl"
#endif
