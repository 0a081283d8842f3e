#pragma once
// Weight matrices repacked once at bind into tiles (see tile_layouts.hpp); a matrix costs the
// file's bytes with the rows rounded up to a tile (IQ4_XS 1/68 more, NVFP4 1/9), or those of the
// format that it is packed as (see packed_form).
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../core/checksum.hpp"
#include "../core/error.hpp"
#include "../core/executor.hpp"
#include "../core/memory.hpp"
#include "../core/stored_bytes.hpp"
#include "../quant/any_of.hpp"
#include "plane_tiles.hpp"
#include "tile_layouts.hpp"

namespace tenon::inline TENON_ABI {

// The weights of one tile as a kernel reads them; `scales` is null where the format has none. Of a
// format without a tile layout `values` is the first of the tile's file rows.
struct TileWeights {
  const std::byte* values = nullptr;
  const std::byte* scales = nullptr;
};

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
    check_size(tag, rows.size(), out, in);
    const auto buffer = std::make_shared<AlignedBuffer>(packed_bytes(tag, out, in));
    return pack_into({buffer->data(), buffer->size()}, buffer, tag, rows, out, in, team, done);
  }
  // The same into memory of the caller: packed_bytes() on a cache line, which `owner` keeps.
  template <class Done = IgnoreBytes>
  static PackedMatrix pack_into(std::span<std::byte> to, std::shared_ptr<const void> owner, int tag,
                                StoredBytes rows, Dim out, Dim in, Executor& team,
                                Done&& done = {}) {
    check_size(tag, rows.size(), out, in);
    PackedMatrix packed = view(tag, to, out, in, std::move(owner));
    FormatList<Formats>::visit(tag, [&]<class F>(F) { packed.template fill<F>(rows, team, done); });
    return packed;
  }
  // One that was packed before, where it lies on a cache line. ShapeError unless packed_bytes().
  static PackedMatrix view(int tag, std::span<const std::byte> packed, Dim out, Dim in,
                           std::shared_ptr<const void> owner) {
    PackedMatrix matrix;
    matrix.tag_ = tag;
    matrix.out_ = out;
    matrix.in_ = in;
    FormatList<Formats>::visit(tag, [&]<class F>(F) { matrix.template lay_out<packed_form<F>>(); });
    if (matrix.bytes_ != packed.size()) {
      fail<ShapeError>("a packed matrix of ", out, " rows of ", in, " values must have ",
                       matrix.bytes_, " bytes, it has ", packed.size(), "; pack it again");
    }
    matrix.data_ = packed.data();
    matrix.owner_ = std::move(owner);
    return matrix;
  }
  // One that only knows its sizes; packed() is empty, and nothing can be read from it.
  static PackedMatrix outline(int tag, Dim out, Dim in) {
    PackedMatrix matrix;
    matrix.tag_ = tag;
    matrix.out_ = out;
    matrix.in_ = in;
    FormatList<Formats>::visit(tag, [&]<class F>(F) { matrix.template lay_out<packed_form<F>>(); });
    return matrix;
  }
  // Bytes of a packed [out, in], both positive. CapacityError when they leave the address space.
  static std::size_t packed_bytes(int tag, Dim out, Dim in) { return outline(tag, out, in).bytes_; }
  // A number that changes with the arrangement of packed bytes: of a pattern, packed.
  static std::uint64_t layout_signature(int tag) {
    return FormatList<Formats>::visit(tag, [&]<class F>(F) {
      constexpr Dim rows = 2 * tile_rows, columns = F::block == 1 ? 16 : 2 * F::block;
      std::vector<std::byte> pattern(rows * row_bytes<F>(columns));
      for (std::size_t i = 0; i < pattern.size(); ++i) {
        pattern[i] = static_cast<std::byte>(i * 37 + i / 256);
      }
      SerialExecutor serial;
      return checksum(pack(tag, pattern, rows, columns, serial).packed());
    });
  }

  int tag() const { return tag_; }
  Dim out() const { return out_; }
  Dim in() const { return in_; }
  Dim tiles() const { return ceil_div(out_, tile_rows); }
  std::size_t bytes() const { return bytes_; }
  // Of one row as it lies in its tile.
  std::size_t bytes_of_row() const { return (value_stride_ + scale_stride_) / tile_rows; }
  std::span<const std::byte> packed() const { return {data_, data_ == nullptr ? 0 : bytes_}; }

  // Writes the in() exactly decoded values of one row, 0 <= row < out().
  void decode_row(Dim row, float* to) const {
    FormatList<Formats>::visit(tag_, [&]<class F>(F) {
      if constexpr (Tiled<packed_form<F>>) {
        const TileWeights from = tile(row / tile_rows);
        gather_row<packed_form<F>>(from, static_cast<std::size_t>(row % tile_rows), to);
      } else {
        const std::size_t at = static_cast<std::size_t>(row) * row_bytes<packed_form<F>>(in_);
        decode_part<packed_form<F>>(data_ + at, 0, in_, to);
      }
    });
  }

  // Tile t, 0 <= t < tiles().
  TileWeights tile(Dim t) const {
    const auto index = static_cast<std::size_t>(t);
    const std::byte* values = data_ + index * value_stride_;
    if (scale_stride_ == 0) return {values, nullptr};
    return {values, data_ + scales_at_ + index * scale_stride_};
  }

 private:
  static void check_size(int tag, std::size_t bytes, Dim out, Dim in) {
    FormatList<Formats>::visit(tag, [&]<class F>(F) { check_size<F>(bytes, out, in); });
  }
  template <class F>
  static void check_size(std::size_t bytes, Dim out, Dim in) {
    // A row longer than all there is must not reach row_bytes, where it might wrap around.
    const bool plausible =
        in > 0 && static_cast<std::size_t>((in - 1) / F::block) < bytes / F::block_bytes;
    const std::size_t row = plausible ? row_bytes<F>(in) : 0;
    if (plausible && out > 0 && bytes % row == 0 && bytes / row == static_cast<std::size_t>(out))
      return;
    fail<ShapeError>("the ", F::name, " weights of ", out, " rows of ", in, " values must be ", out,
                     " x ceil(", in, " / ", F::block, ") x ", F::block_bytes, " bytes, they are ",
                     bytes, "; check the tensor's shape and type against the model's sizes");
  }
  // All values, then all scales, so that vectors of values start on cache lines.
  template <class F>
  void lay_out() {
    if constexpr (Tiled<F>) {
      using Layout = TileLayout<F>;
      constexpr std::size_t block_bytes = Layout::value_bytes + Layout::scale_bytes;
      static_assert(block_bytes <= tile_rows * F::block_bytes * 10 / 9);
      const auto blocks = static_cast<std::size_t>(ceil_div(in_, F::block));
      const auto count = static_cast<std::size_t>(tiles());
      bytes_ = checked_multiply(count, checked_multiply(blocks, block_bytes));
      value_stride_ = blocks * Layout::value_bytes;
      scale_stride_ = blocks * Layout::scale_bytes;
      scales_at_ = count * value_stride_;
    } else {
      value_stride_ = tile_rows * row_bytes<F>(in_);
      bytes_ = checked_multiply(static_cast<std::size_t>(out_), row_bytes<F>(in_));
    }
  }

  template <class F, class Done>
  void fill(const StoredBytes& rows, Executor& team, Done& done) {
    const std::size_t tile_bytes = tile_rows * row_bytes<F>(in_);
    // What has to be made shall stay in a processor's own cache until it is packed.
    const std::size_t panel = std::size_t{rows.made() ? 1u : 4u} << (rows.made() ? 18 : 20);
    const auto some = static_cast<Dim>((std::max)(std::size_t{1}, panel / tile_bytes));
    const std::size_t most = static_cast<std::size_t>((std::min)(some, tiles())) * tile_bytes;
    const auto workers = static_cast<std::size_t>(team.threads());
    AlignedBuffer scratch(rows.made() ? checked_multiply(workers, most) : 0);
    team.run([&](Worker worker) {
      const Range mine = share(tiles(), worker);
      std::vector<std::byte> again;  // a tile's rows, of a format that is packed as another
      for (Dim first = mine.begin; first < mine.end; first += some) {
        const Dim last = (std::min)(first + some, mine.end);
        const std::size_t from = static_cast<std::size_t>(first) * tile_bytes;
        const std::size_t to = (std::min)(static_cast<std::size_t>(last) * tile_bytes, rows.size());
        std::byte* own = scratch.data();
        if (own != nullptr) own += static_cast<std::size_t>(worker.index) * most;
        const auto part = rows.read(from, {own, to - from});
        for (Dim t = first; t < last; ++t) {
          const std::byte* at = part.data() + static_cast<std::size_t>(t - first) * tile_bytes;
          if constexpr (std::is_same_v<packed_form<F>, F>) {
            fill_tile<F>(at, row_bytes<F>(in_), t);
          } else {
            repack<F>(at, used_rows(t), again);
            fill_tile<packed_form<F>>(again.data(),
                                      again.size() / static_cast<std::size_t>(used_rows(t)), t);
          }
        }
        rows.done(from, to - from);
        if (!done(part)) return;
      }
    });
  }
  Dim used_rows(Dim t) const { return (std::min)(Dim{tile_rows}, out_ - t * tile_rows); }
  // Makes `count` rows of F those of its packed form.
  template <class F>
  void repack(const std::byte* rows, Dim count, std::vector<std::byte>& to) const {
    using To = packed_form<F>;
    constexpr std::size_t bytes = static_cast<std::size_t>(F::block / To::block) * To::block_bytes;
    const auto blocks = static_cast<std::size_t>(count * ceil_div(in_, F::block));
    to.resize(blocks * bytes);
    for (std::size_t b = 0; b < blocks; ++b) {
      F::repack(rows + b * F::block_bytes, to.data() + b * bytes);
    }
  }
  // From the tile's first row on, `row_size` bytes each.
  template <class F>
  void fill_tile(const std::byte* from, std::size_t row_size, Dim t) {
    const TileWeights at = tile(t);
    auto* values = const_cast<std::byte*>(at.values);
    const Dim used = used_rows(t);
    if constexpr (Tiled<F>) {
      using Layout = TileLayout<F>;
      auto* scales = const_cast<std::byte*>(at.scales);
      const Dim blocks = ceil_div(in_, F::block);
      if (used < tile_rows) {
        const auto count = static_cast<std::size_t>(blocks);
        std::memset(values, 0, count * Layout::value_bytes);
        if (Layout::scale_bytes > 0) std::memset(scales, 0, count * Layout::scale_bytes);
      }
      if constexpr (requires { &Layout::scatter_rows; }) {
        if (used == tile_rows) {
          return Layout::scatter_rows(from, row_size, static_cast<std::size_t>(blocks), values,
                                      scales);
        }
      }
      for (Dim first = 0; first < blocks; first += Layout::copy_blocks) {
        const Dim end = (std::min)(blocks, first + Layout::copy_blocks);
        for (Dim r = 0; r < used; ++r) {
          const std::byte* row = from + static_cast<std::size_t>(r) * row_size;
          for (Dim b = first; b < end; ++b) {
            const auto i = static_cast<std::size_t>(b);
            Layout::scatter(row + i * F::block_bytes, static_cast<std::size_t>(r),
                            values + i * Layout::value_bytes, scales + i * Layout::scale_bytes);
          }
        }
      }
    } else {
      for (Dim r = 0; r < used; ++r) {
        const auto i = static_cast<std::size_t>(r);
        std::memcpy(values + i * row_bytes<F>(in_), from + i * row_size, row_bytes<F>(in_));
      }
    }
  }
  // Puts the row's file blocks together again, some at a time, and lets the format decode them.
  template <class F>
  void gather_row(TileWeights from, std::size_t row, float* to) const {
    using Layout = TileLayout<F>;
    constexpr Dim at_once = F::block == 1 ? 64 : 1;
    std::byte blocks[at_once * F::block_bytes];
    for (Dim k = 0; k < in_; k += at_once * F::block) {
      const Dim count = (std::min)(at_once * F::block, in_ - k);
      for (Dim b = 0; b < ceil_div(count, F::block); ++b) {
        const auto i = static_cast<std::size_t>(k / F::block + b);
        const std::byte* scales =
            Layout::scale_bytes > 0 ? from.scales + i * Layout::scale_bytes : nullptr;
        Layout::gather(from.values + i * Layout::value_bytes, scales, row,
                       blocks + static_cast<std::size_t>(b) * F::block_bytes);
      }
      decode_part<F>(blocks, 0, count, to + k);
    }
  }

  std::shared_ptr<const void> owner_;  // of the bytes at data_
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t value_stride_ = 0, scale_stride_ = 0, scales_at_ = 0;  // bytes
  Dim out_ = 0, in_ = 0;
  int tag_ = 0;
};

}  // namespace tenon::inline TENON_ABI
