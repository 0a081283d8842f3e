#pragma once
// Tiles of the formats whose quants have two, three, five or six bits, or whose scales are codes
// themselves: Q5_0, Q5_1, the K-quants, IQ4_XS, NVFP4. Their codes move into the planes of
// QuantPlanes, so that a kernel needs a shift and a mask for each plane, whatever order the file
// has them in.
#include <cstdint>
#include <cstring>

#include "../quant/five_bits.hpp"
#include "../quant/iq4_xs.hpp"
#include "../quant/k_quants.hpp"
#include "../quant/nvfp4.hpp"
#include "tile_layouts.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// Bits [Shift, Shift + Width) of the codes of 32 k as one plane; words[v] are the codes of k = 4 v
// to 4 v + 3 of a row, a byte each.
template <int Width, int Shift>
struct CodePlane {
  static constexpr std::uint32_t mask = 0x01010101u * ((1u << Width) - 1u);
  static void scatter(const std::uint32_t* words, std::size_t row, std::byte* plane) {
    for (int vector = 0; vector < Width; ++vector) {
      std::uint32_t lanes = 0;
      for (int bit = 0, v = vector; v < 8; v += Width, bit += Width) {
        lanes |= (words[v] >> Shift & mask) << bit;
      }
      std::memcpy(plane + (static_cast<std::size_t>(vector) * tile_rows + row) * 4, &lanes, 4);
    }
  }
  static void gather(const std::byte* plane, std::size_t row, std::uint32_t* words) {
    for (int vector = 0; vector < Width; ++vector) {
      std::uint32_t lanes;
      std::memcpy(&lanes, plane + (static_cast<std::size_t>(vector) * tile_rows + row) * 4, 4);
      for (int bit = 0, v = vector; v < 8; v += Width, bit += Width) {
        words[v] |= (lanes >> bit & mask) << Shift;
      }
    }
  }
};

// The values section of 32 k.
template <QuantPlanes Planes>
struct PlaneUnit {
  static constexpr std::size_t bytes = 64 * static_cast<std::size_t>(Planes.bits());
  static constexpr std::size_t high_at = 64 * static_cast<std::size_t>(Planes.low);
  static void scatter(const std::uint8_t* codes, std::size_t row, std::byte* unit) {
    std::uint32_t words[8];
    std::memcpy(words, codes, 32);
    CodePlane<Planes.low, 0>::scatter(words, row, unit);
    if constexpr (Planes.high > 0) {
      CodePlane<Planes.high, Planes.low>::scatter(words, row, unit + high_at);
    }
  }
  static void gather(const std::byte* unit, std::size_t row, std::uint8_t* codes) {
    std::uint32_t words[8] = {};
    CodePlane<Planes.low, 0>::gather(unit, row, words);
    if constexpr (Planes.high > 0) {
      CodePlane<Planes.high, Planes.low>::gather(unit + high_at, row, words);
    }
    std::memcpy(codes, words, 32);
  }
};

// [32-k block]: quants in planes, scales as 16 halves (then 16 halves of minima).
template <std::size_t Halves, int Offset>
struct FiveBitTile {
  static constexpr QuantPlanes planes{4, 1};
  static constexpr QuantCode code = QuantCode::integer;
  static constexpr BlockKind kind{false, Halves == 2, 1};
  static constexpr std::size_t unit_bytes = PlaneUnit<planes>::bytes;
  static constexpr std::size_t value_bytes = unit_bytes;
  static constexpr std::size_t scale_bytes = tile_rows * 2 * Halves;
  static constexpr Dim copy_blocks = 1;
  static constexpr int offset = Offset;
  static void scatter(const std::byte* block, std::size_t row, std::byte* values,
                      std::byte* scales) {
    for (std::size_t h = 0; h < Halves; ++h) {
      std::memcpy(scales + (h * tile_rows + row) * 2, block + 2 * h, 2);
    }
    std::uint8_t codes[32] = {};
    read_five_bits(block + 2 * Halves, codes);
    PlaneUnit<planes>::scatter(codes, row, values);
  }
  static void gather(const std::byte* values, const std::byte* scales, std::size_t row,
                     std::byte* block) {
    std::memset(block, 0, 2 * Halves + 20);
    for (std::size_t h = 0; h < Halves; ++h) {
      std::memcpy(block + 2 * h, scales + (h * tile_rows + row) * 2, 2);
    }
    std::uint8_t codes[32];
    PlaneUnit<planes>::gather(values, row, codes);
    write_five_bits(codes, block + 2 * Halves);
  }
};

// ---- codes of a super-block's group scales, in words of 32 bits [word][16 rows] ----

// Q4_K, Q5_K: nibbles of eight scales; nibbles of eight minima; above those, two bits of each scale
// and each minimum in turn.
struct SixBitPairs {
  static constexpr std::size_t words = 3;
  static void read(const std::byte* block, std::uint32_t* to) {
    const GroupCodes codes = read_six_bit_pairs(block + 4);
    for (int g = 0; g < 8; ++g) {
      const std::uint32_t scale = codes.scales[g], minimum = codes.minima[g];
      to[0] |= (scale & 15u) << (4 * g);
      to[1] |= (minimum & 15u) << (4 * g);
      to[2] |= (scale >> 4 | minimum >> 4 << 2) << (4 * g);
    }
  }
  static void write(const std::uint32_t* from, std::byte* block) {
    GroupCodes codes;
    for (int g = 0; g < 8; ++g) {
      const std::uint32_t low = from[0] >> (4 * g) & 15u, low_minimum = from[1] >> (4 * g) & 15u;
      const std::uint32_t high = from[2] >> (4 * g) & 15u;
      codes.scales[g] = static_cast<std::uint8_t>(low | (high & 3u) << 4);
      codes.minima[g] = static_cast<std::uint8_t>(low_minimum | high >> 2 << 4);
    }
    write_six_bit_pairs(codes, block + 4);
  }
};
// Q2_K: a byte for each of sixteen groups, scale below minimum.
struct FourBitPairs {
  static constexpr std::size_t words = 4;
  static void read(const std::byte* block, std::uint32_t* to) {
    for (int g = 0; g < 16; ++g)
      to[g / 4] |= std::to_integer<std::uint32_t>(block[g]) << (g % 4 * 8);
  }
  static void write(const std::uint32_t* from, std::byte* block) {
    for (int g = 0; g < 16; ++g)
      block[g] = static_cast<std::byte>(from[g / 4] >> (g % 4 * 8) & 255u);
  }
};
// Q3_K: nibbles of sixteen scales, then the two bits above them; 32 stands for zero.
struct SixBits {
  static constexpr std::size_t words = 3;
  static void read(const std::byte* block, std::uint32_t* to) {
    std::int8_t scales[16];
    Q3KLayout::read_scales(block, scales);
    for (int g = 0; g < 16; ++g) {
      const auto code = static_cast<std::uint32_t>(scales[g] + 32);
      to[g / 8] |= (code & 15u) << (g % 8 * 4);
      to[2] |= code >> 4 << (2 * g);
    }
  }
  static void write(const std::uint32_t* from, std::byte* block) {
    std::int8_t scales[16];
    for (int g = 0; g < 16; ++g) {
      const std::uint32_t code = (from[g / 8] >> (g % 8 * 4) & 15u) | (from[2] >> (2 * g) & 3u)
                                                                          << 4;
      scales[g] = static_cast<std::int8_t>(static_cast<int>(code) - 32);
    }
    Q3KLayout::write_scales(scales, block);
  }
};
// Q6_K: a byte for each of sixteen groups; 128 stands for zero.
struct EightBits {
  static constexpr std::size_t words = 4;
  static void read(const std::byte* block, std::uint32_t* to) {
    FourBitPairs::read(block + 192, to);
    for (std::size_t w = 0; w < words; ++w) to[w] ^= 0x80808080u;
  }
  static void write(const std::uint32_t* from, std::byte* block) {
    std::uint32_t flipped[words];
    for (std::size_t w = 0; w < words; ++w) flipped[w] = from[w] ^ 0x80808080u;
    FourBitPairs::write(flipped, block + 192);
  }
};

// IQ4_XS: nibbles of eight scales, then the two bits above them, which leave half a word unused; 32
// stands for zero.
struct EightSixBits {
  static constexpr std::size_t words = 2;
  static void read(const std::byte* block, std::uint32_t* to) {
    std::int8_t scales[8];
    Iq4XsLayout::read_scales(block, scales);
    for (int g = 0; g < 8; ++g) {
      const auto code = static_cast<std::uint32_t>(scales[g] + 32);
      to[0] |= (code & 15u) << (4 * g);
      to[1] |= code >> 4 << (2 * g);
    }
  }
  static void write(const std::uint32_t* from, std::byte* block) {
    std::int8_t scales[8];
    for (int g = 0; g < 8; ++g) {
      const std::uint32_t code = (from[0] >> (4 * g) & 15u) | (from[1] >> (2 * g) & 3u) << 4;
      scales[g] = static_cast<std::int8_t>(static_cast<int>(code) - 32);
    }
    Iq4XsLayout::write_scales(scales, block);
  }
};

// [256-k super-block]: quants in planes, eight units of 32 k; then 16 halves d, 16 halves of dmin
// with the sign changed (so that a minimum is one product), where there is one, and the groups'
// codes. `Stored` is how the file lays the block out; `Scales` of 32 k as in BlockKind.
template <class Stored, class GroupScales, QuantPlanes Planes, int Scales, int Offset,
          QuantCode Code = QuantCode::integer>
struct SuperBlockTile {
  using Groups = GroupScales;
  static constexpr bool minima = requires { Stored::dmin_at; };
  static constexpr QuantPlanes planes = Planes;
  static constexpr QuantCode code = Code;
  static constexpr BlockKind kind{Code == QuantCode::iq4, minima, Scales};
  static constexpr std::size_t unit_bytes = PlaneUnit<Planes>::bytes;
  static constexpr std::size_t value_bytes = 8 * unit_bytes;
  static constexpr std::size_t codes_at = tile_rows * (minima ? 4 : 2);
  static constexpr std::size_t scale_bytes = codes_at + tile_rows * 4 * Groups::words;
  static constexpr Dim copy_blocks = 1;
  static constexpr int offset = Offset;

  static void scatter(const std::byte* block, std::size_t row, std::byte* values,
                      std::byte* scales) {
    std::uint8_t codes[super_block] = {};
    Stored::read_codes(block, codes);
    for (std::size_t u = 0; u < 8; ++u) {
      PlaneUnit<Planes>::scatter(codes + 32 * u, row, values + u * unit_bytes);
    }
    std::memcpy(scales + row * 2, block + Stored::d_at, 2);
    if constexpr (minima) negate(block + Stored::dmin_at, scales + (tile_rows + row) * 2);
    std::uint32_t words[Groups::words] = {};
    Groups::read(block, words);
    for (std::size_t w = 0; w < Groups::words; ++w) {
      std::memcpy(scales + codes_at + (w * tile_rows + row) * 4, words + w, 4);
    }
  }
  static void gather(const std::byte* values, const std::byte* scales, std::size_t row,
                     std::byte* block) {
    std::memset(block, 0, Stored::bytes);
    std::uint8_t codes[super_block];
    for (std::size_t u = 0; u < 8; ++u) {
      PlaneUnit<Planes>::gather(values + u * unit_bytes, row, codes + 32 * u);
    }
    Stored::write_codes(codes, block);
    std::memcpy(block + Stored::d_at, scales + row * 2, 2);
    if constexpr (minima) negate(scales + (tile_rows + row) * 2, block + Stored::dmin_at);
    std::uint32_t words[Groups::words];
    for (std::size_t w = 0; w < Groups::words; ++w) {
      std::memcpy(words + w, scales + codes_at + (w * tile_rows + row) * 4, 4);
    }
    Groups::write(words, block);
  }

 private:
  static void negate(const std::byte* half, std::byte* to) {
    std::uint16_t bits;
    std::memcpy(&bits, half, 2);
    bits = static_cast<std::uint16_t>(bits ^ 0x8000u);
    std::memcpy(to, &bits, 2);
  }
};

// [64-k block]: NVFP4 nibbles in planes, two units of 32 k; scales as halves, which hold every one,
// [group of 16 k][16 rows].
struct Nvfp4Tile {
  static constexpr QuantPlanes planes{4, 0};
  static constexpr QuantCode code = QuantCode::e2m1;
  static constexpr BlockKind kind{false, false, 2};
  static constexpr std::size_t unit_bytes = PlaneUnit<planes>::bytes;
  static constexpr std::size_t value_bytes = 2 * unit_bytes;
  static constexpr std::size_t scale_bytes = 4 * tile_rows * 2;
  static constexpr Dim copy_blocks = 1;
  static constexpr int offset = 12;
  static void scatter(const std::byte* block, std::size_t row, std::byte* values,
                      std::byte* scales) {
    std::uint8_t codes[Nvfp4::block] = {};
    for (Dim g = 0; g < 4; ++g) {
      Nvfp4::read_codes(block, g, codes + g * Nvfp4::group);
      store_half(half_e4m3(std::to_integer<int>(block[g])),
                 scales + (static_cast<std::size_t>(g) * tile_rows + row) * 2);
    }
    for (std::size_t u = 0; u < 2; ++u) {
      PlaneUnit<planes>::scatter(codes + 32 * u, row, values + u * unit_bytes);
    }
  }
  static void gather(const std::byte* values, const std::byte* scales, std::size_t row,
                     std::byte* block) {
    std::memset(block, 0, Nvfp4::block_bytes);
    std::uint8_t codes[Nvfp4::block];
    for (std::size_t u = 0; u < 2; ++u) {
      PlaneUnit<planes>::gather(values + u * unit_bytes, row, codes + 32 * u);
    }
    for (Dim g = 0; g < 4; ++g) {
      Nvfp4::write_codes(codes + g * Nvfp4::group, g, block);
      block[g] = static_cast<std::byte>(code_of_half_e4m3(
          load_half(scales + (static_cast<std::size_t>(g) * tile_rows + row) * 2)));
    }
  }
};
}  // namespace detail

template <>
struct TileLayout<Q5_0> : detail::FiveBitTile<1, 16> {};
template <>
struct TileLayout<Q5_1> : detail::FiveBitTile<2, 0> {};
template <>
struct TileLayout<Q2_K>
    : detail::SuperBlockTile<detail::Q2KLayout, detail::FourBitPairs, QuantPlanes{2, 0}, 2, 0> {};
template <>
struct TileLayout<Q3_K>
    : detail::SuperBlockTile<detail::Q3KLayout, detail::SixBits, QuantPlanes{2, 1}, 2, 4> {};
template <>
struct TileLayout<Q4_K>
    : detail::SuperBlockTile<detail::Q4KLayout, detail::SixBitPairs, QuantPlanes{4, 0}, 1, 0> {};
template <>
struct TileLayout<Q5_K>
    : detail::SuperBlockTile<detail::Q5KLayout, detail::SixBitPairs, QuantPlanes{4, 1}, 1, 0> {};
template <>
struct TileLayout<Q6_K>
    : detail::SuperBlockTile<detail::Q6KLayout, detail::EightBits, QuantPlanes{4, 2}, 2, 32> {};
template <>
struct TileLayout<IQ4_XS> : detail::SuperBlockTile<detail::Iq4XsLayout, detail::EightSixBits,
                                                   QuantPlanes{4, 0}, 1, 128, QuantCode::iq4> {};
template <>
struct TileLayout<Nvfp4> : detail::Nvfp4Tile {};

}  // namespace tenon::inline TENON_ABI
