#pragma once
// IQ4_NL of GGUF (ggml type 20): four-bit codes of sixteen levels that lie closer around zero.
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
// The code of the nearest level; halfway between two it is the upper one. 0 for a NaN.
inline int iq4_code(float x) {
  int code = 0;
  for (int i = 1; i < 16; ++i) {
    code += x >= 0.5f * static_cast<float>(iq4_levels[i - 1] + iq4_levels[i]) ? 1 : 0;
  }
  return code;
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

  static void encode(const float* x, Dim n, std::byte* to) {
    detail::encode_blocks<block, block_bytes>(x, n, to, 0, [](const float* values, std::byte* at) {
      const float d = best_scale(values);
      const float inverse = d != 0 ? 1.0f / d : 0.0f;
      std::uint8_t codes[block];
      for (Dim i = 0; i < block; ++i) {
        codes[i] = static_cast<std::uint8_t>(detail::iq4_code(inverse * values[i]));
      }
      detail::store_half(d, at);
      detail::BitPlane<4, 16>::write(codes, block, at + 2);
    });
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const float d = detail::load_half(from);
      std::uint8_t codes[block] = {};
      detail::BitPlane<4, 16>::read(from + 2, block, codes);
      for (Dim i = 0; i < block; ++i) x[i] = d * static_cast<float>(detail::iq4_levels[codes[i]]);
    }
  }

 private:
  // Sums over the block of w x level and w level^2 for the codes of x * inverse, w = x^2.
  struct Fit {
    float cross = 0, square = 0;
    Fit(const float* x, float inverse) {
      for (Dim i = 0; i < block; ++i) {
        const float w = x[i] * x[i];
        const auto level = static_cast<float>(detail::iq4_levels[detail::iq4_code(inverse * x[i])]);
        cross += detail::product(w * level, x[i]);
        square += detail::product(w * level, level);
      }
    }
    float scale() const { return square > 0 ? cross / square : 0.0f; }
  };
  static float best_scale(const float* x) {
    const float peak = detail::signed_peak(x, block);
    if (std::fabs(peak) < 1e-15f) return 0;
    // First the peak on the largest level, then near the smallest: that one reaches further out.
    const Fit upright(x, 1.0f / (-peak / static_cast<float>(detail::iq4_levels[0])));
    float scale = upright.scale(), best = scale * upright.cross;
    for (int shift = -7; shift <= 7; ++shift) {
      const Fit fit(x, static_cast<float>(shift + detail::iq4_levels[0]) / peak);
      if (fit.square > 0 && fit.cross * fit.cross > best * fit.square) {
        scale = fit.scale();
        best = scale * fit.cross;
      }
    }
    return scale;
  }
};

}  // namespace tenon::inline TENON_ABI
