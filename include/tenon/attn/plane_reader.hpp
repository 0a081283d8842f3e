#pragma once
// Where the rows of a tile of keys lie in a cache, or the same rows as floats: layouts of caches
// and element formats end here.
#include <algorithm>

#include "../cache/row_cache.hpp"
#include "../kernels/row_codec.hpp"
#include "mask.hpp"

namespace tenon::inline TENON_ABI::detail {

// Reads one plane of a sequence tile by tile: rows where they lie when the leaves know the format,
// else decoded in scratch.
template <RowReader C>
class PlaneReader {
 public:
  // `dim` values of a head are read, of which `part` may be read alone.
  PlaneReader(const RowOps& ops, const C& cache, SeqId seq, int slot, int plane, Dim dim, Dim part,
              float* scratch)
      : ops_(ops),
        cache_(cache),
        seq_(seq),
        slot_(slot),
        plane_(plane),
        dim_(dim),
        codec_(row_codec_of<typename C::Formats>(cache.tags()[static_cast<std::size_t>(plane)])),
        stride_(static_cast<Dim>(cache.row_stride(slot, plane))),
        scratch_(scratch) {
    const bool sixteens = dim % 16 == 0 && part % 16 == 0;
    if (sixteens || codec_.elements == TileElements::f32) elements_ = codec_.elements;
  }

  // Bytes of a row in all its heads.
  Dim row_bytes() const { return stride_; }
  // Rows that locate() finds, or else those that load() makes.
  TileElements elements(bool located) const { return located ? elements_ : TileElements::f32; }

  // Where the rows of a tile lie; false when the leaves cannot read them there.
  bool locate(int tile, Rows rows, TileRows& found) const {
    if (elements_ == TileElements::none) return false;
    for (int at = rows.low; at < rows.high;) {
      const int end = at + (std::min)(cache_.contiguous_from(at), rows.high - at);
      if (end < rows.high && end % 16 != 0) return false;
      const std::byte* row = cache_.row(seq_, slot_, plane_, at);
      for (int g = (at - tile) / 16; tile + 16 * g < end; ++g) {
        found.group[g] = row + (tile + 16 * g - at) * stride_;
      }
      at = end;
    }
    // What no leaf reads may still be fetched.
    const int first = (rows.low - tile) / 16, last = (rows.high - 1 - tile) / 16;
    for (int g = 0; g < first; ++g) found.group[g] = found.group[first];
    for (int g = last + 1; g < key_tile / 16; ++g) found.group[g] = found.group[last];
    found.stride = stride_;
    found.first = 0;
    return true;
  }
  // The same as floats of one head, whose first value is `first`.
  TileRows load(int tile, Rows rows, Dim first) const {
    for (int r = rows.low; r < rows.high;) {
      const int run = (std::min)(cache_.contiguous_from(r), rows.high - r);
      const std::byte* row = cache_.row(seq_, slot_, plane_, r);
      for (int i = 0; i < run; ++i, row += stride_) {
        codec_.load(ops_, row, first, dim_, scratch_ + (r + i - tile) * dim_);
      }
      r += run;
    }
    TileRows loaded{};
    for (int g = 0; g < key_tile / 16; ++g) {
      loaded.group[g] = reinterpret_cast<const std::byte*>(scratch_ + 16 * g * dim_);
    }
    loaded.stride = dim_ * static_cast<Dim>(sizeof(float));
    return loaded;
  }

 private:
  const RowOps& ops_;
  const C& cache_;
  SeqId seq_;
  int slot_, plane_;
  Dim dim_;
  const RowCodec& codec_;
  Dim stride_;
  float* scratch_;
  TileElements elements_ = TileElements::none;
};

}  // namespace tenon::inline TENON_ABI::detail
