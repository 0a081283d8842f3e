#pragma once
// IQ4_XS of GGUF (ggml type 23): the levels of IQ4_NL, eight scales of six bits to a super-block.
#include <algorithm>
#include <cmath>

#include "bit_planes.hpp"
#include "encode_blocks.hpp"
#include "iq4_nl.hpp"
#include "k_quants.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
struct Iq4XsLayout {
  static constexpr std::size_t bytes = 136, d_at = 0;
  static constexpr Dim group = 32, groups = super_block / group;
  // Six bits each, stored with 32 added: two high ones of all in two bytes, then the low four.
  static void read_scales(const std::byte* block, std::int8_t* scales) {
    std::uint8_t codes[groups] = {};
    BitPlane<2, 1>::read<4>(block + 2, groups, codes);
    BitPlane<4, 1>::read(block + 4, groups, codes);
    for (Dim g = 0; g < groups; ++g) scales[g] = static_cast<std::int8_t>(codes[g] - 32);
  }
  static void write_scales(const std::int8_t* scales, std::byte* block) {
    std::uint8_t codes[groups];
    for (Dim g = 0; g < groups; ++g) codes[g] = static_cast<std::uint8_t>(scales[g] + 32);
    BitPlane<2, 1>::write<4>(codes, groups, block + 2);
    BitPlane<4, 1>::write(codes, groups, block + 4);
  }
  static void read_codes(const std::byte* block, std::uint8_t* codes) {
    BitPlane<4, 16>::read(block + 8, super_block, codes);
  }
  static void write_codes(const std::uint8_t* codes, std::byte* block) {
    BitPlane<4, 16>::write(codes, super_block, block + 8);
  }
};
}  // namespace detail

// half d; 8 scales in 6 bytes; 128 bytes of nibbles: x = d scale level(q). encode gives the bytes
// of the reference's quantizer; a super-block it cannot express (see beyond_blocks) becomes NaN.
struct IQ4_XS {
  using Layout = detail::Iq4XsLayout;
  static constexpr std::string_view name = "iq4_xs";
  static constexpr int ggml_type = 23;
  static constexpr Dim block = detail::super_block;
  static constexpr std::size_t block_bytes = Layout::bytes;

  static void encode(const float* x, Dim n, std::byte* to, const float* importance = nullptr) {
    detail::encode_weighted_blocks<block, block_bytes>(x, n, to, Layout::d_at, importance,
                                                       encode_block);
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      std::int8_t scales[Layout::groups];
      Layout::read_scales(from, scales);
      const float d = detail::load_half(from);
      std::uint8_t codes[block] = {};
      Layout::read_codes(from, codes);
      for (Dim i = 0; i < block; ++i) {
        const Dim group = i / Layout::group;
        const float scale = d * static_cast<float>(scales[group]);
        x[i] = scale * static_cast<float>(detail::iq4_levels[codes[i]]);
      }
    }
  }

 private:
  static void encode_block(const float* x, const float* importance, std::byte* to) {
    float weights[block], fits[Layout::groups];
    detail::weigh_squares(x, importance, block, 2 * detail::mean_square(x, block), weights);
    for (Dim g = 0; g < Layout::groups; ++g) {
      fits[g] = detail::iq4_scale(x + g * Layout::group, weights + g * Layout::group);
    }
    const float d = -detail::signed_peak(fits, Layout::groups) / 32.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    std::uint8_t codes[block];
    std::int8_t scales[Layout::groups];
    for (Dim g = 0; g < Layout::groups; ++g) {
      const int scale = std::clamp(detail::nearest(detail::product(inverse, fits[g])), -32, 31);
      scales[g] = static_cast<std::int8_t>(scale);
      const float unit = d * static_cast<float>(scale);
      const float per_unit = unit != 0 ? 1.0f / unit : 0.0f;
      for (Dim i = g * Layout::group; i < (g + 1) * Layout::group; ++i) {
        codes[i] = static_cast<std::uint8_t>(detail::iq4_code(per_unit * x[i]));
      }
    }
    detail::store_half(d, to);
    Layout::write_scales(scales, to);
    Layout::write_codes(codes, to);
  }
};

}  // namespace tenon::inline TENON_ABI
