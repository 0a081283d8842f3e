#pragma once
// Weight matrices repacked once at bind into tiles (see tile_layouts.hpp); a matrix costs the
// file's bytes with the rows rounded up to a tile (IQ4_XS 1/68 more, NVFP4 1/9), or those of the
// format that it is packed as (see packed_form).
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "../core/error.hpp"
#include "../core/executor.hpp"
#include "../core/shared_pages.hpp"
#include "../core/stored_bytes.hpp"
#include "../quant/any_of.hpp"
#include "packed_leaf.hpp"

namespace tenon::inline TENON_ABI {

// What pack() calls when the caller does not care which bytes are done with.
struct IgnoreBytes {
  bool operator()(std::span<const std::byte>) const { return true; }
};

// A weight matrix [out, in] in one format of the list `Formats`, ready for linear().
template <class Formats>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  // Packs `rows`, the file's [out, in] of the format with this tag, on all threads of `team`; each
  // touches first the rows it will later read, and makes those that have to be made. Calls
  // done(bytes) from any of them for each part of `rows` that is not needed any more; what is left
  // when that returns false is not packed. ShapeError when the bytes are not out rows of in.
  template <class Done = IgnoreBytes>
  static PackedMatrix pack(int tag, StoredBytes rows, Dim out, Dim in, Executor& team,
                           Done&& done = {}) {
    leaf_of(tag).check(rows.size(), out, in);
    const SharedPages::Buffer buffer = SharedPages::take(packed_bytes(tag, out, in));
    return pack_into(buffer.bytes, buffer.owner, tag, rows, out, in, team, done);
  }
  // The same into memory of the caller: packed_bytes() on a cache line, which `owner` keeps.
  template <class Done = IgnoreBytes>
  static PackedMatrix pack_into(std::span<std::byte> to, std::shared_ptr<const void> owner, int tag,
                                StoredBytes rows, Dim out, Dim in, Executor& team,
                                Done&& done = {}) {
    using Called = std::remove_reference_t<Done>;
    leaf_of(tag).check(rows.size(), out, in);
    PackedMatrix packed = view(tag, to, out, in, std::move(owner));
    const PartDone part_done{const_cast<void*>(static_cast<const void*>(&done)),
                             [](void* callable, std::span<const std::byte> part) -> bool {
                               return (*static_cast<Called*>(callable))(part);
                             }};
    leaf_of(tag).fill(packed.tiles_, rows, team, part_done);
    return packed;
  }
  // One that was packed before, where it lies on a cache line. ShapeError unless packed_bytes().
  static PackedMatrix view(int tag, std::span<const std::byte> packed, Dim out, Dim in,
                           std::shared_ptr<const void> owner) {
    PackedMatrix matrix = outline(tag, out, in);
    if (matrix.bytes() != packed.size()) {
      fail<ShapeError>("a packed matrix of ", out, " rows of ", in, " values must have ",
                       matrix.bytes(), " bytes, it has ", packed.size(), "; pack it again");
    }
    matrix.tiles_.data = packed.data();
    matrix.owner_ = std::move(owner);
    return matrix;
  }
  // One that only knows its sizes; packed() is empty, and nothing can be read from it.
  static PackedMatrix outline(int tag, Dim out, Dim in) {
    PackedMatrix matrix;
    matrix.tag_ = tag;
    matrix.tiles_.out = out;
    matrix.tiles_.in = in;
    leaf_of(tag).lay_out(matrix.tiles_);
    return matrix;
  }
  // Bytes of a packed [out, in], both positive. CapacityError when they leave the address space.
  static std::size_t packed_bytes(int tag, Dim out, Dim in) {
    return outline(tag, out, in).bytes();
  }
  // A number that changes with the arrangement of packed bytes: of a pattern, packed.
  static std::uint64_t layout_signature(int tag) { return leaf_of(tag).signature(); }

  int tag() const { return tag_; }
  Dim out() const { return tiles_.out; }
  Dim in() const { return tiles_.in; }
  Dim tiles() const { return tiles_.count(); }
  std::size_t bytes() const { return tiles_.bytes; }
  // Of one row as it lies in its tile.
  std::size_t bytes_of_row() const {
    return (tiles_.value_stride + tiles_.scale_stride) / tile_rows;
  }
  std::span<const std::byte> packed() const {
    return {tiles_.data, tiles_.data == nullptr ? 0 : tiles_.bytes};
  }

  // Writes the in() exactly decoded values of one row, 0 <= row < out().
  void decode_row(Dim row, float* to) const { leaf_of(tag_).decode_row(tiles_, row, to); }

  // Tile t, 0 <= t < tiles().
  TileWeights tile(Dim t) const { return tiles_.tile(t); }

 private:
  static const PackedLeaf& leaf_of(int tag) {
    return FormatList<Formats>::visit(
        tag, []<class F>(F) -> const PackedLeaf& { return packed_leaf<F>(); });
  }

  std::shared_ptr<const void> owner_;  // of the bytes at tiles_.data
  PackedTiles tiles_;
  int tag_ = 0;
};

}  // namespace tenon::inline TENON_ABI
