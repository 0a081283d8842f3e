#pragma once
// IQ4_NL of GGUF (ggml type 20): four-bit codes of sixteen levels that lie closer around zero.
#include <algorithm>
#include <array>
#include <cmath>

#include "bit_planes.hpp"
#include "blocks.hpp"
#include "encode_blocks.hpp"
#include "format.hpp"
#include "rounding.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
inline constexpr int iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};
// The borders between codes are halfway between levels, all of them multiples of a half: codes by
// floor(2 x) from the first border to the last.
inline constexpr int iq4_first = -231, iq4_last = 202;
inline constexpr auto iq4_codes = [] {
  std::array<std::uint8_t, iq4_last - iq4_first + 1> codes{};
  for (int twice = iq4_first; twice <= iq4_last; ++twice) {
    std::uint8_t code = 0;
    while (code < 15 && twice >= iq4_levels[code] + iq4_levels[code + 1]) ++code;
    codes[static_cast<std::size_t>(twice - iq4_first)] = code;
  }
  return codes;
}();
// The code of the nearest level; halfway between two it is the upper one. 0 for a NaN.
inline int iq4_code(float x) {
  const float twice = 2 * x;
  if (!(twice >= static_cast<float>(iq4_first))) return 0;
  const float within = (std::min)(twice, static_cast<float>(iq4_last));
  auto floor = static_cast<int>(within);
  if (static_cast<float>(floor) > within) --floor;
  return iq4_codes[static_cast<std::size_t>(floor - iq4_first)];
}

// Sums over 32 values of w x level and w level^2 for the codes of x * inverse.
struct Iq4Fit {
  float cross = 0, square = 0;
  Iq4Fit(const float* x, const float* weights, float inverse) {
    for (Dim i = 0; i < 32; ++i) {
      const auto level = static_cast<float>(iq4_levels[iq4_code(inverse * x[i])]);
      cross += product(weights[i] * level, x[i]);
      square += product(weights[i] * level, level);
    }
  }
  float scale() const { return square > 0 ? cross / square : 0.0f; }
};
// Of 16 scales of 32 values the one whose codes fit best with these weights, refitted to them.
inline float iq4_scale(const float* x, const float* weights) {
  const float peak = signed_peak(x, 32);
  if (std::fabs(peak) < 1e-15f) return 0;
  // First the peak on the largest level, then near the smallest: that one reaches further out.
  const Iq4Fit upright(x, weights, 1.0f / (-peak / static_cast<float>(iq4_levels[0])));
  float scale = upright.scale(), best = scale * upright.cross;
  for (int shift = -7; shift <= 7; ++shift) {
    const Iq4Fit fit(x, weights, static_cast<float>(shift + iq4_levels[0]) / peak);
    if (fit.square > 0 && fit.cross * fit.cross > best * fit.square) {
      scale = fit.scale();
      best = scale * fit.cross;
    }
  }
  return scale;
}
}  // namespace detail

// half d; 16 bytes of nibbles as in Q4_0: x = d level(q). encode gives the bytes of the reference's
// quantizer of files: of 16 scales the one whose codes fit best with weights x^2, refitted to them.
// A block it cannot express (see beyond_blocks) becomes NaN.
struct IQ4_NL {
  static constexpr std::string_view name = "iq4_nl";
  static constexpr int ggml_type = 20;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 18;

  static void encode(const float* x, Dim n, std::byte* to, const float* importance = nullptr) {
    const auto encode_block = [](const float* values, const float* important, std::byte* at) {
      float weights[block];
      detail::weigh_squares(values, important, block, 2 * detail::mean_square(values, block),
                            weights);
      const float d = detail::iq4_scale(values, weights);
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      std::uint8_t codes[block];
      for (Dim i = 0; i < block; ++i) {
        codes[i] = static_cast<std::uint8_t>(detail::iq4_code(inverse * values[i]));
      }
      detail::store_half(d, at);
      detail::BitPlane<4, 16>::write(codes, block, at + 2);
    };
    detail::encode_weighted_blocks<block, block_bytes>(x, n, to, 0, importance, encode_block);
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from);
      std::uint8_t codes[block] = {};
      detail::BitPlane<4, 16>::read(from + 2, block, codes);
      for (Dim i = 0; i < block; ++i) x[i] = d * static_cast<float>(detail::iq4_levels[codes[i]]);
    }
  }
};

}  // namespace tenon::inline TENON_ABI
