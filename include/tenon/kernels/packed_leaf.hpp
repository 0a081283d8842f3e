#pragma once
// What packing a weight matrix takes for one number format, and nothing else of a composition: a
// program compiles it once per format, and one that links tenon::compiled for its own formats only.
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "../core/checksum.hpp"
#include "../core/error.hpp"
#include "../core/executor.hpp"
#include "../core/memory.hpp"
#include "../core/stored_bytes.hpp"
#include "../quant/format.hpp"
#include "plane_tiles.hpp"
#include "tile_layouts.hpp"

namespace tenon::inline TENON_ABI {

// The weights of one tile as a kernel reads them; `scales` is null where the format has none. Of a
// format without a tile layout `values` is the first of the tile's file rows.
struct TileWeights {
  const std::byte* values = nullptr;
  const std::byte* scales = nullptr;
};

// The tiles of a packed [out, in]: where they lie and how far apart.
struct PackedTiles {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t value_stride = 0, scale_stride = 0, scales_at = 0;  // bytes
  Dim out = 0, in = 0;

  Dim count() const { return ceil_div(out, tile_rows); }
  // Tile t, 0 <= t < count().
  TileWeights tile(Dim t) const {
    const auto index = static_cast<std::size_t>(t);
    const std::byte* values = data + index * value_stride;
    if (scale_stride == 0) return {values, nullptr};
    return {values, data + scales_at + index * scale_stride};
  }
  // Rows of tile t inside the matrix.
  Dim used_rows(Dim t) const { return (std::min)(Dim{tile_rows}, out - t * tile_rows); }
};

// A view of the callable that hears which bytes of a file's rows are done with.
struct PartDone {
  void* callable = nullptr;
  bool (*call)(void* callable, std::span<const std::byte> part) = nullptr;  // null: nobody cares
  bool operator()(std::span<const std::byte> part) const {
    return call == nullptr || call(callable, part);
  }
};

// The packing of one format F; what it is packed as is packed_form<F>.
struct PackedLeaf {
  // ShapeError when `bytes` are not those of a file's [out, in] of F.
  void (*check)(std::size_t bytes, Dim out, Dim in);
  // Sets bytes and strides. CapacityError when they leave the address space.
  void (*lay_out)(PackedTiles& tiles);
  // See PackedMatrix::pack_into().
  void (*fill)(const PackedTiles& tiles, const StoredBytes& rows, Executor& team, PartDone done);
  // The `in` exactly decoded values of one row.
  void (*decode_row)(const PackedTiles& tiles, Dim row, float* to);
  // See PackedMatrix::layout_signature().
  std::uint64_t (*signature)();
};

namespace detail {
template <class F>
struct Packing {
  using To = packed_form<F>;

  static void check(std::size_t bytes, Dim out, Dim in) {
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
  static void lay_out(PackedTiles& tiles) {
    if constexpr (Tiled<To>) {
      using Layout = TileLayout<To>;
      constexpr std::size_t block_bytes = Layout::value_bytes + Layout::scale_bytes;
      static_assert(block_bytes <= tile_rows * To::block_bytes * 10 / 9);
      const auto blocks = static_cast<std::size_t>(ceil_div(tiles.in, To::block));
      const auto count = static_cast<std::size_t>(tiles.count());
      tiles.bytes = checked_multiply(count, checked_multiply(blocks, block_bytes));
      tiles.value_stride = blocks * Layout::value_bytes;
      tiles.scale_stride = blocks * Layout::scale_bytes;
      tiles.scales_at = count * tiles.value_stride;
    } else {
      tiles.value_stride = tile_rows * row_bytes<To>(tiles.in);
      tiles.bytes = checked_multiply(static_cast<std::size_t>(tiles.out), row_bytes<To>(tiles.in));
    }
  }

  static void fill(const PackedTiles& tiles, const StoredBytes& rows, Executor& team,
                   PartDone done) {
    const std::size_t tile_bytes = tile_rows * row_bytes<F>(tiles.in);
    // What has to be made shall stay in a processor's own cache until it is packed.
    const std::size_t panel = std::size_t{rows.made() ? 1u : 4u} << (rows.made() ? 18 : 20);
    const auto some = static_cast<Dim>((std::max)(std::size_t{1}, panel / tile_bytes));
    const std::size_t most = static_cast<std::size_t>((std::min)(some, tiles.count())) * tile_bytes;
    const auto workers = static_cast<std::size_t>(team.threads());
    AlignedBuffer scratch(rows.made() ? checked_multiply(workers, most) : 0);
    team.run([&](Worker worker) {
      const Range mine = share(tiles.count(), worker);
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
          if constexpr (std::is_same_v<To, F>) {
            fill_tile(tiles, at, row_bytes<F>(tiles.in), t);
          } else {
            const Dim used = tiles.used_rows(t);
            repack(at, used * ceil_div(tiles.in, F::block), again);
            fill_tile(tiles, again.data(), again.size() / static_cast<std::size_t>(used), t);
          }
        }
        rows.done(from, to - from);
        if (!done(part)) return;
      }
    });
  }
  // Makes `count` blocks of F those of its packed form.
  static void repack(const std::byte* from, Dim count, std::vector<std::byte>& to) {
    constexpr std::size_t bytes = static_cast<std::size_t>(F::block / To::block) * To::block_bytes;
    const auto blocks = static_cast<std::size_t>(count);
    to.resize(blocks * bytes);
    for (std::size_t b = 0; b < blocks; ++b) {
      F::repack(from + b * F::block_bytes, to.data() + b * bytes);
    }
  }
  // From the tile's first row of the packed form on, `row_size` bytes each.
  static void fill_tile(const PackedTiles& tiles, const std::byte* from, std::size_t row_size,
                        Dim t) {
    const TileWeights at = tiles.tile(t);
    auto* values = const_cast<std::byte*>(at.values);
    const Dim used = tiles.used_rows(t);
    if constexpr (Tiled<To>) {
      using Layout = TileLayout<To>;
      auto* scales = const_cast<std::byte*>(at.scales);
      const Dim blocks = ceil_div(tiles.in, To::block);
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
            Layout::scatter(row + i * To::block_bytes, static_cast<std::size_t>(r),
                            values + i * Layout::value_bytes, scales + i * Layout::scale_bytes);
          }
        }
      }
    } else {
      for (Dim r = 0; r < used; ++r) {
        const auto i = static_cast<std::size_t>(r);
        std::memcpy(values + i * row_bytes<To>(tiles.in), from + i * row_size,
                    row_bytes<To>(tiles.in));
      }
    }
  }

  // Puts the row's file blocks together again, some at a time, and lets the format decode them.
  static void decode_row(const PackedTiles& tiles, Dim row, float* to) {
    if constexpr (Tiled<To>) {
      using Layout = TileLayout<To>;
      const TileWeights from = tiles.tile(row / tile_rows);
      const auto lane = static_cast<std::size_t>(row % tile_rows);
      constexpr Dim at_once = To::block == 1 ? 64 : 1;
      std::byte blocks[at_once * To::block_bytes];
      for (Dim k = 0; k < tiles.in; k += at_once * To::block) {
        const Dim count = (std::min)(at_once * To::block, tiles.in - k);
        for (Dim b = 0; b < ceil_div(count, To::block); ++b) {
          const auto i = static_cast<std::size_t>(k / To::block + b);
          const std::byte* scales =
              Layout::scale_bytes > 0 ? from.scales + i * Layout::scale_bytes : nullptr;
          Layout::gather(from.values + i * Layout::value_bytes, scales, lane,
                         blocks + static_cast<std::size_t>(b) * To::block_bytes);
        }
        decode_part<To>(blocks, 0, count, to + k);
      }
    } else {
      const std::size_t at = static_cast<std::size_t>(row) * row_bytes<To>(tiles.in);
      decode_part<To>(tiles.data + at, 0, tiles.in, to);
    }
  }

  static std::uint64_t signature() {
    PackedTiles tiles;
    tiles.out = 2 * tile_rows;
    tiles.in = F::block == 1 ? 16 : 2 * F::block;
    std::vector<std::byte> pattern(static_cast<std::size_t>(tiles.out) * row_bytes<F>(tiles.in));
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      pattern[i] = static_cast<std::byte>(i * 37 + i / 256);
    }
    lay_out(tiles);
    AlignedBuffer packed(tiles.bytes);
    tiles.data = packed.data();
    SerialExecutor serial;
    fill(tiles, pattern, serial, {});
    return checksum({packed.data(), tiles.bytes});
  }

  static constexpr PackedLeaf leaf{&check, &lay_out, &fill, &decode_row, &signature};
};
}  // namespace detail

// The packing of F.
template <class F>
const PackedLeaf& packed_leaf() {
  return detail::Packing<F>::leaf;
}

#if defined(TENON_COMPILED)
// What cmake/compiled/packed.cpp instantiates; any other format is packed by the program's own
// code.
struct IQ3_S;
struct Q8_1;
struct Q8_K;
extern template const PackedLeaf& packed_leaf<F32>();
extern template const PackedLeaf& packed_leaf<F16>();
extern template const PackedLeaf& packed_leaf<Bf16>();
extern template const PackedLeaf& packed_leaf<Q8_0>();
extern template const PackedLeaf& packed_leaf<Q4_0>();
extern template const PackedLeaf& packed_leaf<Q4_1>();
extern template const PackedLeaf& packed_leaf<Q5_0>();
extern template const PackedLeaf& packed_leaf<Q5_1>();
extern template const PackedLeaf& packed_leaf<Q2_K>();
extern template const PackedLeaf& packed_leaf<Q3_K>();
extern template const PackedLeaf& packed_leaf<Q4_K>();
extern template const PackedLeaf& packed_leaf<Q5_K>();
extern template const PackedLeaf& packed_leaf<Q6_K>();
extern template const PackedLeaf& packed_leaf<IQ4_NL>();
extern template const PackedLeaf& packed_leaf<Mxfp4>();
extern template const PackedLeaf& packed_leaf<IQ4_XS>();
extern template const PackedLeaf& packed_leaf<Nvfp4>();
extern template const PackedLeaf& packed_leaf<IQ3_S>();
extern template const PackedLeaf& packed_leaf<Q8_1>();
extern template const PackedLeaf& packed_leaf<Q8_K>();
#endif

}  // namespace tenon::inline TENON_ABI
