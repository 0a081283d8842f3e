#pragma once
// Turning cached keys to other positions.
#include <span>

#include "../attn/mask.hpp"
#include "../cache/row_cache.hpp"
#include "../kernels/row_codec.hpp"
#include "../nn/rotary.hpp"

namespace tenon::inline TENON_ABI {

// Rotates `heads` heads of head_dim values, from value `first` of each row of plane 0 on, by the
// angles of their row 0, in the scratch `values` of `width` values, and stores them in the cache's
// format again, which may round them.
template <RowCache C>
void turn_cached_keys(const RowOps& ops, C& cache, int slot, SeqId seq, Rows rows,
                      const RotaryAngles& angles, std::span<float> values, Dim width, Dim first,
                      Dim heads, Dim head_dim) {
  const RowCodec& codec = row_codec_of<typename C::Formats>(cache.tags()[0]);
  for (int r = rows.low; r < rows.high; ++r) {
    std::byte* row = cache.row(seq, slot, 0, r);
    codec.load(ops, row, 0, width, values.data());
    rotate(ops, angles, 0, values.data() + first, heads, head_dim);
    codec.store(ops, values.data(), width, row);
  }
}

}  // namespace tenon::inline TENON_ABI
