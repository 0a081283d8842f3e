#pragma once
// The arithmetic of attention over one tile of keys, chosen by instruction set.
#include <cstddef>
#include <cstdint>

#include "../core/attention_tiles.hpp"
#include "isa.hpp"

namespace tenon::inline TENON_ABI {

// Where the rows of one head lie in one tile of keys: four groups of sixteen, in each of them one
// after another.
struct TileRows {
  const std::byte* group[4];  // where row 0 of the group would be
  Dim stride;                 // bytes
  Dim first;                  // the head's first value in a row
};

// What the leaves fetch while they compute: the lines of the four groups of a later tile, in each
// of whose rows `run` bytes matter. One line of each group at a time, in the order in which they
// lie, because that is what a memory system is fast at; a few with every step of a leaf's loop,
// because a core waits when it has asked for more than some sixteen lines. The addresses need not
// exist.
struct TileAhead {
  static constexpr Dim line = 64;
  const std::byte* group[4];
  Dim stride, run;   // bytes
  Dim offset, left;  // bytes: where in a group fetching has come to, and what is left of that row
  int remaining;     // lines of each group
  int lines;         // of these, how many the next leaf is to fetch
  int steps;         // of its loop

  void next() {
    offset += line;
    left -= line;
    if (left <= 0) {  // `left` is what the last line was too long
      offset += stride - run + left;
      left = run;
    }
  }
};

// The leaves that read rows, for one element format.
struct TileOps {
  // rows [low, high) -> keys [dim][key_tile], in an element type of the leaves' own, of at most
  // four bytes; lanes without a row become zero in the groups of 32 that have one, others are left
  // alone.
  void (*transpose_keys)(const TileRows& rows, int low, int high, TileAhead& ahead, Dim dim,
                         void* keys);
  // queries [count][dim] -> scores [count][key_tile], of what transpose_keys made.
  void (*score)(const float* queries, int count, const void* keys, int low, int high,
                TileAhead& ahead, Dim dim, float* scores);
  // outputs [heads][count][dim] = outputs * factors + weights [heads][count][key_tile] x rows that
  // are kept, for `count` queries of each of some heads that lie side by side.
  void (*accumulate)(const float* weights, const float* factors, int heads, int count,
                     std::uint64_t keep, const TileRows& rows, TileAhead& ahead, Dim dim,
                     float* outputs);
};

// Element formats that TileOps read as they lie. Of the others, and of heads of no whole sixteen
// values, the rows are decoded first; floats may have any width.
enum class TileElements { f32, f16, bf16, q8_0, none };

struct AttentionOps {
  TileOps tiles[4];  // by TileElements
  // scores [count][key_tile] -> weights; bit i of `keep`: key i counts. `factors` are those by
  // which the outputs so far must be scaled.
  void (*soften)(float* scores, int count, std::uint64_t keep, TileAhead& ahead, float* maxima,
                 float* denominators, float* factors);
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
