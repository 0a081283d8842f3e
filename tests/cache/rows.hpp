#pragma once
// Rows whose every byte says which row they are.
#include <cstring>
#include <vector>

#include "tenon/cache/row_cache.hpp"
#include "tenon/quant/blocks.hpp"
#include "tenon/quant/dense.hpp"

namespace rows {

using namespace tenon;

inline std::uint64_t stamp(int who, int row) {
  std::uint64_t x = static_cast<std::uint64_t>(who) * 1000003 + static_cast<std::uint64_t>(row);
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}
inline std::byte byte_of(std::uint64_t stamp, int slot, int plane, std::size_t i) {
  const std::uint64_t x = stamp + static_cast<std::uint64_t>(slot * 2 + plane) * 0x51ed2701u + i;
  return static_cast<std::byte>((x * 0xd6e8feb86659fd93u) >> 56);
}

// Writes row `row` of every slot and plane.
template <class C>
void fill(C& cache, const std::vector<RowSpec>& slots, SeqId seq, int row, std::uint64_t stamp) {
  for (int slot = 0; slot < static_cast<int>(slots.size()); ++slot) {
    for (int plane = 0; plane < 2; ++plane) {
      std::byte* at = cache.row(seq, slot, plane, row);
      for (std::size_t i = 0; i < cache.row_stride(slot, plane); ++i) {
        at[i] = byte_of(stamp, slot, plane, i);
      }
    }
  }
}
template <class C>
bool holds(const C& cache, const std::vector<RowSpec>&, SeqId seq, int slot, int row,
           std::uint64_t stamp) {
  for (int plane = 0; plane < 2; ++plane) {
    const std::byte* at = cache.row(seq, slot, plane, row);
    for (std::size_t i = 0; i < cache.row_stride(slot, plane); ++i) {
      if (at[i] != byte_of(stamp, slot, plane, i)) return false;
    }
  }
  return true;
}

}  // namespace rows
