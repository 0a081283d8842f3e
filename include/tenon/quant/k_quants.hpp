#pragma once
// The K-quants of GGUF: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K. A super-block of 256 values has one or two
// halves, whose multiples of few bits are the scales (and minima) of its groups of 16 or 32. encode
// gives the bytes of the reference quantizer where it is given no importance; a super-block it
// cannot express (see beyond_blocks) becomes NaN. decode's products of a half, a scale and a code
// have at most 24 significant bits: they are exact, so fusing them with a sum changes nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bit_planes.hpp"
#include "blocks.hpp"
#include "encode_blocks.hpp"
#include "format.hpp"
#include "k_search.hpp"
#include "rounding.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
inline constexpr Dim super_block = 256;

// Scales and minima of at most 16 groups as they are stored.
struct GroupCodes {
  std::uint8_t scales[16] = {}, minima[16] = {};
};

// Q4_K and Q5_K: eight pairs of six bits in 12 bytes. Bytes 0 to 3 and 4 to 7 hold scales and
// minima 0 to 3 and, above them, the top two bits of numbers 4 to 7; the low four bits of those
// share bytes 8 to 11.
inline GroupCodes read_six_bit_pairs(const std::byte* from) {
  GroupCodes codes;
  const auto bits = [&](int at, int shift, unsigned mask) {
    return std::to_integer<unsigned>(from[at]) >> shift & mask;
  };
  for (int g = 0; g < 4; ++g) {
    codes.scales[g] = static_cast<std::uint8_t>(bits(g, 0, 63));
    codes.minima[g] = static_cast<std::uint8_t>(bits(g + 4, 0, 63));
    codes.scales[g + 4] = static_cast<std::uint8_t>(bits(g + 8, 0, 15) | bits(g, 6, 3) << 4);
    codes.minima[g + 4] = static_cast<std::uint8_t>(bits(g + 8, 4, 15) | bits(g + 4, 6, 3) << 4);
  }
  return codes;
}
inline void write_six_bit_pairs(const GroupCodes& codes, std::byte* to) {
  for (int g = 0; g < 4; ++g) {
    const int scale = codes.scales[g + 4], minimum = codes.minima[g + 4];
    to[g] = static_cast<std::byte>(codes.scales[g] | scale >> 4 << 6);
    to[g + 4] = static_cast<std::byte>(codes.minima[g] | minimum >> 4 << 6);
    to[g + 8] = static_cast<std::byte>((scale & 15) | (minimum & 15) << 4);
  }
}

// Groups with a minimum: x = (d scale) q - (dmin minimum), q in [0, Layout::top].
template <class Layout>
struct AffineSuperBlock {
  static constexpr Dim block = super_block;
  static constexpr std::size_t block_bytes = Layout::bytes;

  // `importance`, when given, is [n] and not negative: see encode_important() in importance.hpp.
  static void encode(const float* x, Dim n, std::byte* to, const float* importance = nullptr) {
    encode_weighted_blocks<block, block_bytes>(
        x, n, to, Layout::d_at, importance,
        [](const float* values, const float* weights, std::byte* at) {
          weights == nullptr ? encode_block(values, at) : encode_important(values, weights, at);
        });
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      const GroupCodes stored = Layout::read_groups(from);
      const float d = load_half(from + Layout::d_at), dmin = load_half(from + Layout::dmin_at);
      std::uint8_t codes[block] = {};
      Layout::read_codes(from, codes);
      for (Dim g = 0; g < groups; ++g) {
        const float scale = d * static_cast<float>(stored.scales[g]);
        const float minimum = dmin * static_cast<float>(stored.minima[g]);
        for (Dim i = g * group; i < (g + 1) * group; ++i) {
          x[i] = scale * static_cast<float>(codes[i]) - minimum;
        }
      }
    }
  }

 private:
  static constexpr Dim group = Layout::group, groups = block / group;

  static void encode_block(const float* x, std::byte* to) {
    std::uint8_t codes[block];
    AffineFit fits[groups];
    float most_scale = 0, most_minimum = 0;
    for (Dim g = 0; g < groups; ++g) {
      float weights[group];
      weigh(x + g * group, weights);
      fits[g] = search_affine(x + g * group, weights, group, Layout::top, Layout::search,
                              codes + g * group);
      most_scale = (std::max)(most_scale, fits[g].scale);
      most_minimum = (std::max)(most_minimum, fits[g].minimum);
    }
    constexpr auto most = static_cast<float>(Layout::most);
    const float per_scale = most_scale > 0 ? most / most_scale : 0.0f;
    const float per_minimum = most_minimum > 0 ? most / most_minimum : 0.0f;
    GroupCodes stored;
    for (Dim g = 0; g < groups; ++g) {
      stored.scales[g] = Layout::group_code(nearest(product(per_scale, fits[g].scale)));
      stored.minima[g] = Layout::group_code(nearest(product(per_minimum, fits[g].minimum)));
    }
    store_half(most_scale / most, to + Layout::d_at);
    store_half(most_minimum / most, to + Layout::dmin_at);
    write(x, stored, codes, to);
  }
  // The same where errors are weighed: scales and minima are then searched like codes.
  static void encode_important(const float* x, const float* importance, std::byte* to) {
    std::uint8_t codes[block];
    float scales[groups], minima[groups], group_weights[groups], weights[block];
    weigh_squares(x, importance, block, Layout::around * mean_square(x, block), weights);
    for (Dim g = 0; g < groups; ++g) {
      const float* own = weights + g * group;
      const AffineFit fit = search_affine(x + g * group, own, group, Layout::top, important_search,
                                          codes + g * group);
      scales[g] = fit.scale;
      minima[g] = fit.minimum;
      group_weights[g] = 0;
      for (Dim i = 0; i < group; ++i) group_weights[g] += own[i];
    }
    GroupCodes stored;
    const float d = search_positive(scales, group_weights, groups, Layout::most, stored.scales);
    const float dmin = search_positive(minima, group_weights, groups, Layout::most, stored.minima);
    store_half(d, to + Layout::d_at);
    store_half(dmin, to + Layout::dmin_at);
    write(x, stored, codes, to);
  }
  // Writes groups and codes, these once more for the scales that are stored.
  static void write(const float* x, GroupCodes stored, std::uint8_t* codes, std::byte* to) {
    Layout::write_groups(stored, to);
    stored = Layout::read_groups(to);
    const float d = load_half(to + Layout::d_at), dmin = load_half(to + Layout::dmin_at);
    for (Dim g = 0; g < groups; ++g) {
      const float scale = d * static_cast<float>(stored.scales[g]);
      if (scale == 0) continue;
      const float minimum = dmin * static_cast<float>(stored.minima[g]);
      for (Dim i = g * group; i < (g + 1) * group; ++i) {
        codes[i] = static_cast<std::uint8_t>(
            std::clamp(nearest((x[i] + minimum) / scale), 0, Layout::top));
      }
    }
    Layout::write_codes(codes, to);
  }
  // What an error of each value counts: its magnitude, and that of the whole group where squares
  // are summed.
  static void weigh(const float* x, float* weights) {
    float base = 0;
    if constexpr (Layout::search.squares) {
      for (Dim i = 0; i < group; ++i) base += product(x[i], x[i]);
      base = std::sqrt(base / static_cast<float>(group));
    }
    for (Dim i = 0; i < group; ++i) weights[i] = base + std::fabs(x[i]);
  }
};

// Groups of 16 without a minimum: x = (d scale) (q - Layout::top), q in [0, 2 top).
template <class Layout>
struct SymmetricSuperBlock {
  static constexpr Dim block = super_block;
  static constexpr std::size_t block_bytes = Layout::bytes;

  // `importance`, when given, is [n] and not negative: see encode_important() in importance.hpp.
  static void encode(const float* x, Dim n, std::byte* to, const float* importance = nullptr) {
    encode_weighted_blocks<block, block_bytes>(
        x, n, to, Layout::d_at, importance,
        [](const float* values, const float* weights, std::byte* at) {
          weights == nullptr ? encode_block(values, at) : encode_important(values, weights, at);
        });
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      std::int8_t scales[groups];
      Layout::read_scales(from, scales);
      const float d = load_half(from + Layout::d_at);
      std::uint8_t codes[block] = {};
      Layout::read_codes(from, codes);
      for (Dim g = 0; g < groups; ++g) {
        const float scale = d * static_cast<float>(scales[g]);
        for (Dim i = g * group; i < (g + 1) * group; ++i) {
          x[i] = scale * static_cast<float>(codes[i] - Layout::top);
        }
      }
    }
  }

 private:
  static constexpr Dim group = 16, groups = block / group;

  static void encode_block(const float* x, std::byte* to, const float* importance = nullptr) {
    std::uint8_t codes[block];
    float fits[groups];
    for (Dim g = 0; g < groups; ++g) {
      const float* own = importance == nullptr ? nullptr : importance + g * group;
      fits[g] = Layout::search(x + g * group, group, Layout::top, codes + g * group, own);
    }
    // The largest scale, with its sign, is put on the lowest of the stored ones.
    const float peak = signed_peak(fits, groups);
    if (!(std::fabs(peak) >= Layout::negligible_scale)) return;  // the block stays zero
    const float inverse = static_cast<float>(Layout::lowest_scale) / peak;
    std::int8_t scales[groups];
    for (Dim g = 0; g < groups; ++g) {
      scales[g] = static_cast<std::int8_t>(std::clamp(
          nearest(product(inverse, fits[g])), Layout::lowest_scale, -Layout::lowest_scale - 1));
    }
    store_half(1.0f / inverse, to + Layout::d_at);
    write(x, scales, codes, to);
  }
  static void encode_important(const float* x, const float* importance, std::byte* to) {
    std::uint8_t codes[block];
    if constexpr (!Layout::searches_scales) return encode_block(x, to, importance);
    float fits[groups], group_weights[groups], weights[block];
    weigh_squares(x, importance, block, 2.0f * mean_square(x, block), weights);
    for (Dim g = 0; g < groups; ++g) {
      const float* own = weights + g * group;
      fits[g] = search_symmetric(x + g * group, group, Layout::top, codes + g * group, own);
      group_weights[g] = 0;
      for (Dim i = 0; i < group; ++i) group_weights[g] += own[i];
    }
    std::uint8_t scale_codes[groups];
    const float d =
        search_symmetric(fits, groups, -Layout::lowest_scale, scale_codes, group_weights);
    if (d == 0) return;  // the block stays zero
    std::int8_t scales[groups];
    for (Dim g = 0; g < groups; ++g) {
      scales[g] = static_cast<std::int8_t>(scale_codes[g] + Layout::lowest_scale);
    }
    store_half(d, to + Layout::d_at);
    write(x, scales, codes, to);
  }
  // Writes scales and codes, these once more for the scales that are stored.
  static void write(const float* x, const std::int8_t* scales, std::uint8_t* codes, std::byte* to) {
    Layout::write_scales(scales, to);
    const float d = load_half(to + Layout::d_at);
    for (Dim g = 0; g < groups; ++g) {
      const float scale = d * static_cast<float>(scales[g]);
      if (scale == 0) continue;
      for (Dim i = g * group; i < (g + 1) * group; ++i) {
        codes[i] = static_cast<std::uint8_t>(
            std::clamp(nearest(x[i] / scale), -Layout::top, Layout::top - 1) + Layout::top);
      }
    }
    Layout::write_codes(codes, to);
  }
};

struct Q2KLayout {
  static constexpr std::size_t bytes = 84, d_at = 80, dmin_at = 82;
  static constexpr Dim group = 16;
  static constexpr int top = 3, most = 15;
  static constexpr AffineSearch search{-0.5f, 0.1f, 15, false};
  static constexpr float around = 1;  // mean squares that importance is weighed with
  static std::uint8_t group_code(int code) { return static_cast<std::uint8_t>(code); }
  static GroupCodes read_groups(const std::byte* block) {
    GroupCodes codes;
    for (Dim g = 0; g < 16; ++g) {
      codes.scales[g] = static_cast<std::uint8_t>(low_nibble(block[g]));
      codes.minima[g] = static_cast<std::uint8_t>(high_nibble(block[g]));
    }
    return codes;
  }
  static void write_groups(const GroupCodes& codes, std::byte* block) {
    for (Dim g = 0; g < 16; ++g) {
      block[g] = static_cast<std::byte>(codes.scales[g] | codes.minima[g] << 4);
    }
  }
  static void read_codes(const std::byte* block, std::uint8_t* codes) {
    BitPlane<2, 32>::read(block + 16, super_block, codes);
  }
  static void write_codes(const std::uint8_t* codes, std::byte* block) {
    BitPlane<2, 32>::write(codes, super_block, block + 16);
  }
};

struct Q4KLayout {
  static constexpr std::size_t bytes = 144, d_at = 0, dmin_at = 2;
  static constexpr Dim group = 32;
  static constexpr int top = 15, most = 63;
  static constexpr AffineSearch search{-1.0f, 0.1f, 20, true};
  static constexpr float around = 2;
  static std::uint8_t group_code(int code) {
    return (std::min)(static_cast<std::uint8_t>(code), std::uint8_t{most});
  }
  static GroupCodes read_groups(const std::byte* block) { return read_six_bit_pairs(block + 4); }
  static void write_groups(const GroupCodes& codes, std::byte* block) {
    write_six_bit_pairs(codes, block + 4);
  }
  static void read_codes(const std::byte* block, std::uint8_t* codes) {
    BitPlane<4, 32>::read(block + 16, super_block, codes);
  }
  static void write_codes(const std::uint8_t* codes, std::byte* block) {
    BitPlane<4, 32>::write(codes, super_block, block + 16);
  }
};

struct Q5KLayout : Q4KLayout {
  static constexpr std::size_t bytes = 176;
  static constexpr int top = 31;
  static constexpr AffineSearch search{-0.5f, 0.1f, 15, true};
  static void read_codes(const std::byte* block, std::uint8_t* codes) {
    BitPlane<4, 32>::read(block + 48, super_block, codes);
    BitPlane<1, 32>::read<4>(block + 16, super_block, codes);
  }
  static void write_codes(const std::uint8_t* codes, std::byte* block) {
    BitPlane<4, 32>::write(codes, super_block, block + 48);
    BitPlane<1, 32>::write<4>(codes, super_block, block + 16);
  }
};

struct Q3KLayout {
  static constexpr std::size_t bytes = 110, d_at = 108;
  static constexpr int top = 4, lowest_scale = -32;
  static constexpr float negligible_scale = (std::numeric_limits<float>::min)();
  static constexpr auto search = descend_symmetric;
  static constexpr bool searches_scales = true;  // under importance
  // Six bits each, stored with 32 added: low four, then high two.
  static void read_scales(const std::byte* block, std::int8_t* scales) {
    std::uint8_t codes[16] = {};
    BitPlane<4, 8>::read(block + 96, 16, codes);
    BitPlane<2, 4>::read<4>(block + 104, 16, codes);
    for (int g = 0; g < 16; ++g) scales[g] = static_cast<std::int8_t>(codes[g] - 32);
  }
  static void write_scales(const std::int8_t* scales, std::byte* block) {
    std::uint8_t codes[16];
    for (int g = 0; g < 16; ++g) codes[g] = static_cast<std::uint8_t>(scales[g] + 32);
    BitPlane<4, 8>::write(codes, 16, block + 96);
    BitPlane<2, 4>::write<4>(codes, 16, block + 104);
  }
  static void read_codes(const std::byte* block, std::uint8_t* codes) {
    BitPlane<2, 32>::read(block + 32, super_block, codes);
    BitPlane<1, 32>::read<2>(block, super_block, codes);
  }
  static void write_codes(const std::uint8_t* codes, std::byte* block) {
    BitPlane<2, 32>::write(codes, super_block, block + 32);
    BitPlane<1, 32>::write<2>(codes, super_block, block);
  }
};

struct Q6KLayout {
  static constexpr std::size_t bytes = 210, d_at = 208;
  static constexpr int top = 32, lowest_scale = -128;
  static constexpr float negligible_scale = negligible_value;
  static constexpr auto search = search_symmetric;
  static constexpr bool searches_scales = false;
  static void read_scales(const std::byte* block, std::int8_t* scales) {
    std::memcpy(scales, block + 192, 16);
  }
  static void write_scales(const std::int8_t* scales, std::byte* block) {
    std::memcpy(block + 192, scales, 16);
  }
  static void read_codes(const std::byte* block, std::uint8_t* codes) {
    BitPlane<4, 64>::read(block, super_block, codes);
    BitPlane<2, 32>::read<4>(block + 128, super_block, codes);
  }
  static void write_codes(const std::uint8_t* codes, std::byte* block) {
    BitPlane<4, 64>::write(codes, super_block, block);
    BitPlane<2, 32>::write<4>(codes, super_block, block + 128);
  }
};
}  // namespace detail

// 16 bytes of group scales (low nibble) and minima; 64 of codes; half d, half dmin. Groups of 16.
struct Q2_K : detail::AffineSuperBlock<detail::Q2KLayout> {
  static constexpr std::string_view name = "q2_K";
  static constexpr int ggml_type = 10;
};
// 32 bytes of third bits; 64 of the low two; 12 of group scales; half d. Groups of 16.
struct Q3_K : detail::SymmetricSuperBlock<detail::Q3KLayout> {
  static constexpr std::string_view name = "q3_K";
  static constexpr int ggml_type = 11;
};
// half d, half dmin; 12 bytes of group scales and minima; 128 of nibbles. Groups of 32.
struct Q4_K : detail::AffineSuperBlock<detail::Q4KLayout> {
  static constexpr std::string_view name = "q4_K";
  static constexpr int ggml_type = 12;
};
// half d, half dmin; 12 bytes of group scales and minima; 32 of fifth bits; 128 of nibbles. Groups
// of 32.
struct Q5_K : detail::AffineSuperBlock<detail::Q5KLayout> {
  static constexpr std::string_view name = "q5_K";
  static constexpr int ggml_type = 13;
};
// 128 bytes of nibbles; 64 of the high two bits; 16 int8 group scales; half d. Groups of 16.
struct Q6_K : detail::SymmetricSuperBlock<detail::Q6KLayout> {
  static constexpr std::string_view name = "q6_K";
  static constexpr int ggml_type = 14;
};

}  // namespace tenon::inline TENON_ABI
