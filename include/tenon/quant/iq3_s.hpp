#pragma once
// IQ3_S of GGUF (ggml type 21): four magnitudes at a time are a point of a lattice of 512.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "encode_blocks.hpp"
#include "k_quants.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// The points of the lattice in the order of their codes, four digits each: digit q stands for the
// magnitude 2 q + 1. Which points there are is part of the format (ggml's iq3s_grid).
inline constexpr char iq3_s_points[] =
    "0000100020005000700001001100210041006100020012005200330004002400540074001500350006002600"
    "1700470077000010101020104010011011105110021032107210131053104410161056102710002010205020"
    "7020012031206120122052200320432024205420742015203520072037203030113051300230223013303330"
    "6330443005302530763017305730004031407140124042402340044034401540074020504050025022506250"
    "3350145054507450665037506060116031601360256017600070207040700270227062703370057045700001"
    "1001200140010101110131015101710102012201130143016301450165011601270100111011301160110111"
    "4111121103113311141105112511071167110021212151217121022142212321042134215521062127211031"
    "4031703101313131123172310331433114312631073130415041214141411341334124416441054145411051"
    "0151315112510351235115510261426172614461646110713071017121711271537114712671077100021002"
    "3002500270020102210241026102120232027202030223021402340254020502250276020702370257020012"
    "2012011231127112221252121312431224121512102240227022122232220322732214223522752217224722"
    "0032203250321132223242321332333224320532663210427042024232422342534214422742574240521152"
    "2252735204523552075200622062706212625562166250721172627203723472057220031103310351037103"
    "2203130333035303240344037403150336031703101330135013411312133213041306132713671300232123"
    "0223232343230523103301334133123332337233033314333433743355333733304311436143224313432543"
    "0643464310530153215352532353445365533753616314631073307302732273537300044004210402044204"
    "7204230414040504070420147014111431142214031453143414151455141024302401245124122433240424"
    "7524262407244034113431340234223413345334004420444244734404441744505470541254265431644364"
    "0664017451740374347415742005010541052205040544057405250566054705101530155015211512152315"
    "2715002511253225032563253525203570350135723544351535563537351045404502452345644521556255"
    "1555355524652075407522751106310651061306330606060016021672164616212643262426552626260726"
    "0036413612360436524634462646005630564356065650660466117631760007400770070207220763070407"
    "4507260720171117421734175417102740270127612712270327152720372337533735371047504731470247"
    "054722572457206713670077";
inline constexpr int iq3_s_count = 512;
static_assert(sizeof iq3_s_points == 4 * iq3_s_count + 1);
inline int iq3_s_magnitude(int point, int place) {
  return 2 * (iq3_s_points[4 * point + place] - '0') + 1;
}
}  // namespace detail

// half d; 64 low bytes of the 9-bit points; 8 bytes of their ninth bits; 32 of signs; 4 of scale
// nibbles s, one for 32 values: x = d (2 s + 1) (+-magnitude). The encoder tries a few scales for
// each group and takes for every four values the nearest of the points around. A super-block it
// cannot express (see beyond_blocks) becomes NaN.
struct IQ3_S {
  static constexpr std::string_view name = "iq3_s";
  static constexpr int ggml_type = 21;
  static constexpr Dim block = detail::super_block;
  static constexpr std::size_t block_bytes = 110;

  // How it lies in memory for the kernels: the same numbers as Q6_K, (2 s + 1) being one of that
  // format's group scales, at 6.5625 bits for 3.4375.
  using packed = Q6_K;
  static void repack(const std::byte* from, std::byte* to) {
    std::memset(to, 0, Q6_K::block_bytes);
    std::int8_t values[block], scales[16];
    read(from, values, scales);
    std::uint8_t codes[block];
    for (Dim i = 0; i < block; ++i) codes[i] = static_cast<std::uint8_t>(values[i] + 32);
    detail::Q6KLayout::write_codes(codes, to);
    detail::Q6KLayout::write_scales(scales, to);
    std::memcpy(to + detail::Q6KLayout::d_at, from, 2);
  }

  static void encode(const float* x, Dim n, std::byte* to) {
    detail::encode_blocks<block, block_bytes>(x, n, to, 0, encode_block);
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      std::int8_t values[block], scales[16];
      read(from, values, scales);
      const float d = detail::load_half(from);
      for (Dim i = 0; i < block; ++i) {
        const Dim group = i / 16;
        x[i] = d * static_cast<float>(scales[group]) * static_cast<float>(values[i]);
      }
    }
  }

 private:
  static constexpr std::size_t low_at = 2, high_at = 66, signs_at = 74, scales_at = 106;
  static constexpr int most_scale = 31;  // 2 * 15 + 1

  // Signed magnitudes, and the scales of sixteen values each.
  static void read(const std::byte* from, std::int8_t* values, std::int8_t* scales) {
    const auto bit = [&](std::size_t at, Dim i) {
      return std::to_integer<int>(from[at + static_cast<std::size_t>(i / 8)]) >> (i % 8) & 1;
    };
    for (Dim four = 0; four < block / 4; ++four) {
      const int point = std::to_integer<int>(from[low_at + static_cast<std::size_t>(four)]) |
                        bit(high_at, four) << 8;
      for (int place = 0; place < 4; ++place) {
        const int magnitude = detail::iq3_s_magnitude(point, place);
        const Dim i = 4 * four + place;
        values[i] = static_cast<std::int8_t>(bit(signs_at, i) == 1 ? -magnitude : magnitude);
      }
    }
    for (Dim g = 0; g < 16; ++g) {
      const std::byte pair = from[scales_at + static_cast<std::size_t>(g / 4)];
      const int code = g / 2 % 2 == 0 ? detail::low_nibble(pair) : detail::high_nibble(pair);
      scales[g] = static_cast<std::int8_t>(2 * code + 1);
    }
  }

  // For each of the 8^4 corners (digits as in the points) the points nearest to it, nearest first.
  static constexpr std::size_t candidates = 8;
  using Neighbours = std::array<std::array<std::uint16_t, candidates>, 4096>;
  static Neighbours find_neighbours() {
    Neighbours all{};
    for (std::size_t corner = 0; corner < all.size(); ++corner) {
      std::array<std::pair<int, std::uint16_t>, detail::iq3_s_count> distances;
      for (int p = 0; p < detail::iq3_s_count; ++p) {
        int distance = 0;
        for (int place = 0; place < 4; ++place) {
          const int digit = static_cast<int>(corner >> (3 * place) & 7);
          const int off = 2 * digit + 1 - detail::iq3_s_magnitude(p, place);
          distance += off * off;
        }
        distances[static_cast<std::size_t>(p)] = {distance, static_cast<std::uint16_t>(p)};
      }
      std::partial_sort(distances.begin(), distances.begin() + candidates, distances.end());
      for (std::size_t i = 0; i < candidates; ++i) all[corner][i] = distances[i].second;
    }
    return all;
  }
  // Of the points near the corner next to four magnitudes, in units of the scale, the nearest.
  static int nearest_point(const float* units) {
    static const Neighbours neighbours = find_neighbours();
    std::size_t corner = 0;
    for (int place = 0; place < 4; ++place) {
      const auto digit = static_cast<std::size_t>((std::min)(0.5f * units[place], 7.0f));
      corner |= digit << (3 * place);
    }
    int best = 0;
    float least = std::numeric_limits<float>::infinity();
    for (const std::uint16_t point : neighbours[corner]) {
      float distance = 0;
      for (int place = 0; place < 4; ++place) {
        const float off = units[place] - static_cast<float>(detail::iq3_s_magnitude(point, place));
        distance += detail::product(off, off);
      }
      if (distance < least) {
        least = distance;
        best = point;
      }
    }
    return best;
  }
  // The points of 32 values for a scale, and the least squares of scale and points.
  static detail::ScaleFit fit(const float* x, float inverse, int* points) {
    detail::ScaleFit sums;
    for (Dim four = 0; four < 8; ++four) {
      float units[4];
      for (int i = 0; i < 4; ++i) units[i] = std::fabs(x[4 * four + i]) * inverse;
      points[four] = nearest_point(units);
      for (int i = 0; i < 4; ++i) {
        sums.add(1.0f, std::fabs(x[4 * four + i]),
                 static_cast<float>(detail::iq3_s_magnitude(points[four], i)));
      }
    }
    return sums;
  }
  static float best_scale(const float* x) {
    const float peak = std::fabs(detail::signed_peak(x, 32));
    if (peak < detail::negligible_value) return 0;
    float scale = 0, best = 0;
    int points[8];
    for (const int levels : {11, 13, 15, 17}) {
      const detail::ScaleFit sums = fit(x, static_cast<float>(levels) / peak, points);
      if (sums.cross * sums.cross > best * sums.square) {
        scale = sums.scale();
        best = scale * sums.cross;
      }
    }
    return scale;
  }
  static void encode_block(const float* x, std::byte* to) {
    float scales[8];
    for (Dim g = 0; g < 8; ++g) scales[g] = best_scale(x + 32 * g);
    const float most = *std::max_element(scales, scales + 8);
    if (!(most > 0)) return;  // d = 0: the block is zero
    detail::store_half(most / most_scale, to);
    const float d = detail::load_half(to);
    if (!(d > 0)) return;
    for (Dim g = 0; g < 8; ++g) {
      const auto at = static_cast<std::size_t>(g);
      const int code = std::clamp(detail::nearest(0.5f * (scales[g] / d - 1)), 0, 15);
      to[scales_at + at / 2] |= static_cast<std::byte>(code << (at % 2 * 4));
      int points[8];
      fit(x + 32 * g, 1.0f / (d * static_cast<float>(2 * code + 1)), points);
      for (std::size_t four = 0; four < 8; ++four) {
        to[low_at + 8 * at + four] = static_cast<std::byte>(points[four] & 255);
        to[high_at + at] |= static_cast<std::byte>(points[four] >> 8 << four);
      }
      for (std::size_t i = 0; i < 32; ++i) {
        const bool negative = std::signbit(x[32 * g + static_cast<Dim>(i)]);
        to[signs_at + 4 * at + i / 8] |= static_cast<std::byte>((negative ? 1 : 0) << (i % 8));
      }
    }
  }
};

}  // namespace tenon::inline TENON_ABI
