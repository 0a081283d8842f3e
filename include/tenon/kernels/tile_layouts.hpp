#pragma once
// How weights lie in memory for the kernels: the lanes of a kernel are output rows. A tile is 16
// rows of the matrix with k ascending inside it; every number stays exactly what the file stores.
// Here: dense formats and blocks of 32 whose quants fill whole nibbles or bytes.
#include <cstdint>
#include <cstring>

#include "../core/types.hpp"
#include "../quant/blocks.hpp"
#include "../quant/dense.hpp"
#include "../quant/iq4_nl.hpp"
#include "../quant/mxfp4.hpp"
#include "transpose.hpp"

namespace tenon::inline TENON_ABI {

inline constexpr int tile_rows = 16;

// How one k-block of 16 rows lies in a tile: `value_bytes` in the values section, `scale_bytes` in
// the scales section. scatter() places one row's file block, gather() takes it out again. A layout
// may have scatter_rows(), which places `count` blocks of 16 whole rows, `stride` bytes apart.
// Specialised for the formats the kernels read directly; any other format keeps its file rows.
template <class F>
struct TileLayout;

template <class F>
concept Tiled = requires {
  TileLayout<F>::value_bytes;
};
// Formats whose block dot products the kernels can also do in integers.
template <class F>
concept IntegerTiled = requires {
  TileLayout<F>::offset;
};

// Where the bits of a quant lie: the lower ones in one plane of byte lanes, the others, if there
// are more, in a second one behind it. A plane of w bits of 32 k is w vectors of 64 bytes. Byte
// lane 4 r + i belongs to row r and to k = 4 v + i: of those eight v, from the lowest bits up,
// vector v % w holds the bits of v, v + w, ...
struct QuantPlanes {
  int low, high;  // bits: 2, 4 or 8; 0, 1 or 2
  constexpr int bits() const { return low + high; }
};
// What a quant stands for: itself, or the element of a table.
enum class QuantCode { integer, e2m1, iq4 };

// What kernels on int8 activations are compiled for: many formats share a kind.
struct BlockKind {
  bool wide;    // quants fill eight bits; otherwise at most seven
  bool minima;  // a minimum stands beside each scale
  int scales;   // of 32 values: 1, or 2 where the halves have their own
};

namespace detail {
// [k][16 rows] of numbers of `Width` bytes.
template <std::size_t Width>
struct DenseTile {
  static constexpr std::size_t value_bytes = tile_rows * Width;
  static constexpr std::size_t scale_bytes = 0;
  static constexpr Dim copy_blocks = 32;  // k-blocks of a row copied at a time
  static void scatter(const std::byte* block, std::size_t row, std::byte* values, std::byte*) {
    std::memcpy(values + row * Width, block, Width);
  }
  static void scatter_rows(const std::byte* rows, std::size_t stride, std::size_t count,
                           std::byte* values, std::byte* scales) {
    const std::size_t whole = count / 8 * 8;
    if constexpr (Width == 4) {
      transpose_words(rows, stride, whole, 0, values);
    } else {
      transpose_halves(rows, stride, whole, values);
    }
    for (std::size_t k = whole; k < count; ++k) {
      for (std::size_t r = 0; r < tile_rows; ++r) {
        scatter(rows + r * stride + k * Width, r, values + k * value_bytes, scales);
      }
    }
  }
  static void gather(const std::byte* values, const std::byte*, std::size_t row, std::byte* block) {
    std::memcpy(block, values + row * Width, Width);
  }
};

// [32-k block]: quants as vectors of 16 rows x 4 bytes of the row's block, scales as 16 halves
// (then 16 halves of minima). A stored byte is the file's byte with `Flip` applied, so that an int8
// becomes the unsigned q + 128; `Offset` is what a kernel subtracts from the unsigned value.
// `unit_bytes`: of the values of 32 k.
template <std::size_t Halves, std::size_t QuantBytes, std::uint32_t Flip, int Offset>
struct BlockTile {
  static constexpr std::size_t value_bytes = tile_rows * QuantBytes;
  static constexpr std::size_t scale_bytes = tile_rows * 2 * Halves;
  static constexpr Dim copy_blocks = 1;
  static constexpr int offset = Offset;
  static constexpr std::size_t unit_bytes = value_bytes;
  static constexpr QuantPlanes planes{QuantBytes / 4, 0};
  static constexpr QuantCode code = QuantCode::integer;
  static constexpr BlockKind kind{QuantBytes == 32, Halves == 2, 1};
  static void scatter(const std::byte* block, std::size_t row, std::byte* values,
                      std::byte* scales) {
    for (std::size_t h = 0; h < Halves; ++h) {
      std::memcpy(scales + (h * tile_rows + row) * 2, block + 2 * h, 2);
    }
    for (std::size_t j = 0; j < QuantBytes / 4; ++j) {
      std::uint32_t four;
      std::memcpy(&four, block + 2 * Halves + 4 * j, 4);
      four ^= Flip;
      std::memcpy(values + (j * tile_rows + row) * 4, &four, 4);
    }
  }
  static void scatter_rows(const std::byte* rows, std::size_t stride, std::size_t count,
                           std::byte* values, std::byte* scales) {
    constexpr std::size_t block_bytes = 2 * Halves + QuantBytes;
    for (std::size_t b = 0; b < count; ++b, rows += block_bytes) {
      transpose_words(rows + 2 * Halves, stride, QuantBytes / 4, Flip, values + b * value_bytes);
      for (std::size_t h = 0; h < Halves; ++h) {
        for (std::size_t r = 0; r < tile_rows; ++r) {
          std::memcpy(scales + b * scale_bytes + (h * tile_rows + r) * 2, rows + r * stride + 2 * h,
                      2);
        }
      }
    }
  }
  static void gather(const std::byte* values, const std::byte* scales, std::size_t row,
                     std::byte* block) {
    for (std::size_t h = 0; h < Halves; ++h) {
      std::memcpy(block + 2 * h, scales + (h * tile_rows + row) * 2, 2);
    }
    for (std::size_t j = 0; j < QuantBytes / 4; ++j) {
      std::uint32_t four;
      std::memcpy(&four, values + (j * tile_rows + row) * 4, 4);
      four ^= Flip;
      std::memcpy(block + 2 * Halves + 4 * j, &four, 4);
    }
  }
};

// [32-k block]: MXFP4 nibbles as in BlockTile, scales as the 16 exponent bytes. A kernel looks a
// nibble up as the doubled element + 12, which makes it an unsigned integer with an offset.
struct Mxfp4Tile {
  static constexpr bool exponent_scales = true;
  static constexpr std::size_t value_bytes = tile_rows * 16;
  static constexpr std::size_t scale_bytes = tile_rows;
  static constexpr Dim copy_blocks = 1;
  static constexpr int offset = 12;
  static constexpr std::size_t unit_bytes = value_bytes;
  static constexpr QuantPlanes planes{4, 0};
  static constexpr QuantCode code = QuantCode::e2m1;
  static constexpr BlockKind kind{false, false, 1};
  static void scatter(const std::byte* block, std::size_t row, std::byte* values,
                      std::byte* scales) {
    scales[row] = block[0];
    for (std::size_t j = 0; j < 4; ++j) {
      std::memcpy(values + (j * tile_rows + row) * 4, block + 1 + 4 * j, 4);
    }
  }
  static void scatter_rows(const std::byte* rows, std::size_t stride, std::size_t count,
                           std::byte* values, std::byte* scales) {
    for (std::size_t b = 0; b < count; ++b, rows += 1 + 16) {
      transpose_words(rows + 1, stride, 4, 0, values + b * value_bytes);
      for (std::size_t r = 0; r < tile_rows; ++r) scales[b * scale_bytes + r] = rows[r * stride];
    }
  }
  static void gather(const std::byte* values, const std::byte* scales, std::size_t row,
                     std::byte* block) {
    block[0] = scales[row];
    for (std::size_t j = 0; j < 4; ++j) {
      std::memcpy(block + 1 + 4 * j, values + (j * tile_rows + row) * 4, 4);
    }
  }
};

// [32-k block]: as Q4_0. A kernel looks a nibble up as the level + 128.
struct Iq4NlTile : BlockTile<1, 16, 0, 128> {
  static constexpr QuantCode code = QuantCode::iq4;
  static constexpr BlockKind kind{true, false, 1};
};
}  // namespace detail

template <>
struct TileLayout<F32> : detail::DenseTile<4> {};
template <>
struct TileLayout<F16> : detail::DenseTile<2> {};
template <>
struct TileLayout<Bf16> : detail::DenseTile<2> {};
template <>
struct TileLayout<Q8_0> : detail::BlockTile<1, 32, 0x80808080u, 128> {};
template <>
struct TileLayout<Q4_0> : detail::BlockTile<1, 16, 0, 8> {};
template <>
struct TileLayout<Q4_1> : detail::BlockTile<2, 16, 0, 0> {};
template <HalfWay Ties>
struct TileLayout<Mxfp4Of<Ties>> : detail::Mxfp4Tile {};
template <>
struct TileLayout<IQ4_NL> : detail::Iq4NlTile {};

}  // namespace tenon::inline TENON_ABI
