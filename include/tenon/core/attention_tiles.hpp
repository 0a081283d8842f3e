#pragma once
// How attention is cut, in numbers: kernels compute by them, and the cost of a step follows from
// them.
#include "types.hpp"

namespace tenon::inline TENON_ABI {

// Keys are folded into a softmax in tiles that start at multiples of this many rows, whatever the
// cache's own layout: it is what makes every layout, chunking and batch give the same bits.
inline constexpr int key_tile = 64;

// Query vectors, and tokens of one sequence, that at most share the loading of each tile; no result
// depends on their number.
inline constexpr Dim block_vectors = 64;
inline constexpr int block_tokens = 16;

}  // namespace tenon::inline TENON_ABI
