#pragma once
// Sixteen float lanes in two AVX registers. See lanes_scalar.hpp for what each operation means.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../core/abi.hpp"

#define TENON_LANE TENON_TARGET("avx2,fma,f16c") __attribute__((always_inline)) inline

namespace tenon::inline TENON_ABI::avx2 {

inline constexpr int accumulators = 4;  // of 16 registers, two to each

struct F32x16 {
  __m256 low, high;
};
struct I32x16 {
  __m256i low, high;
};

TENON_LANE F32x16 broadcast(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
TENON_LANE F32x16 zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
TENON_LANE F32x16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
// All bits set in the lanes below n.
TENON_LANE __m256i first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TENON_LANE F32x16 load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
}
TENON_LANE F32x16 load_half(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
TENON_LANE F32x16 broadcast_half(const std::byte* p) {
  std::int16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  const __m256 scale = _mm256_cvtph_ps(_mm_set1_epi16(bits));
  return {scale, scale};
}
TENON_LANE __m256 load_bf16_8(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
TENON_LANE F32x16 load_bf16(const std::uint16_t* p) {
  return {load_bf16_8(p), load_bf16_8(p + 8)};
}
TENON_LANE __m256 load_half_scales_8(const std::byte* p) {
  const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  const __m256i bits =
      _mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e));
  const __m256i nan = _mm256_cmpeq_epi32(e, _mm256_set1_epi32(255));
  return _mm256_castsi256_ps(_mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7fc00000), nan));
}
TENON_LANE F32x16 load_half_scales(const std::byte* p) {
  return {load_half_scales_8(p), load_half_scales_8(p + 8)};
}
TENON_LANE void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
TENON_LANE void store_first(float* p, F32x16 a, int n) {
  _mm256_maskstore_ps(p, first(n), a.low);
  _mm256_maskstore_ps(p + 8, first(n - 8), a.high);
}
TENON_LANE void store_half(std::uint16_t* p, F32x16 a) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.low, nearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.high, nearest));
}
TENON_LANE F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
TENON_LANE F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
TENON_LANE F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
TENON_LANE F32x16 div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
TENON_LANE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
TENON_LANE F32x16 larger(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
TENON_LANE F32x16 smaller(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
TENON_LANE F32x16 abs(F32x16 a) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(a.low, magnitude), _mm256_and_ps(a.high, magnitude)};
}
TENON_LANE F32x16 zero_below(F32x16 x, F32x16 cut, F32x16 value) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.low, cut.low, _CMP_NLT_UQ), value.low),
          _mm256_and_ps(_mm256_cmp_ps(x.high, cut.high, _CMP_NLT_UQ), value.high)};
}
TENON_LANE __m256 select_8(unsigned bits, __m256 a, __m256 b) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i chosen = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, each)));
}
TENON_LANE F32x16 select(unsigned bits, F32x16 a, F32x16 b) {
  return {select_8(bits, a.low, b.low), select_8(bits >> 8, a.high, b.high)};
}
TENON_LANE __m256 power_of_two_8(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
TENON_LANE F32x16 power_of_two(F32x16 n) {
  return {power_of_two_8(n.low), power_of_two_8(n.high)};
}
TENON_LANE F32x16 swap_pairs(F32x16 a) {
  return {_mm256_permute_ps(a.low, 0xb1), _mm256_permute_ps(a.high, 0xb1)};
}
TENON_LANE void transpose_8(__m256 (&r)[8]) {
  __m256 a[8], b[8];
  TENON_UNROLL
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  TENON_UNROLL
  for (int i = 0; i < 8; i += 4) {  // b[i + c]: rows i..i+3 of columns c and 4 + c
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  TENON_UNROLL
  for (int c = 0; c < 4; ++c) {
    r[c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x20);
    r[4 + c] = _mm256_permute2f128_ps(b[c], b[4 + c], 0x31);
  }
}
// Four blocks of 8 x 8; the two off the diagonal change places.
TENON_LANE void transpose(F32x16 (&r)[16]) {
  __m256 block[8], other[8];
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) block[i] = r[i].low;
  transpose_8(block);
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) r[i].low = block[i];
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) block[i] = r[8 + i].high;
  transpose_8(block);
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) r[8 + i].high = block[i];
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) block[i] = r[i].high;
  transpose_8(block);
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) other[i] = r[8 + i].low;
  transpose_8(other);
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) r[8 + i].low = block[i];
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) r[i].high = other[i];
}
// Four blocks of 8 x 8: by 16 bits, by 32, by 64.
TENON_LANE void transpose_words(const std::byte* rows, std::ptrdiff_t stride, std::uint16_t* to,
                                std::ptrdiff_t step) {
  for (int block = 0; block < 4; ++block) {
    const int row = block / 2 * 8, column = block % 2 * 8;
    __m128i a[8], b[8];
    TENON_UNROLL
    for (int i = 0; i < 8; i += 2) {
      const std::byte* at = rows + (row + i) * stride + column * 2;
      const __m128i r0 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      const __m128i r1 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + stride));
      a[i] = _mm_unpacklo_epi16(r0, r1);
      a[i + 1] = _mm_unpackhi_epi16(r0, r1);
    }
    TENON_UNROLL
    for (int i = 0; i < 8; i += 4) {
      b[i] = _mm_unpacklo_epi32(a[i], a[i + 2]);
      b[i + 1] = _mm_unpackhi_epi32(a[i], a[i + 2]);
      b[i + 2] = _mm_unpacklo_epi32(a[i + 1], a[i + 3]);
      b[i + 3] = _mm_unpackhi_epi32(a[i + 1], a[i + 3]);
    }
    TENON_UNROLL
    for (int i = 0; i < 8; ++i) {
      const __m128i words = i % 2 == 0 ? _mm_unpacklo_epi64(b[i / 2], b[4 + i / 2])
                                       : _mm_unpackhi_epi64(b[i / 2], b[4 + i / 2]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (column + i) * step + row), words);
    }
  }
}
TENON_LANE float sum(F32x16 a) {
  const __m256 by8 = _mm256_add_ps(a.low, a.high);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
TENON_LANE float largest(F32x16 a) {
  const __m256 by8 = _mm256_max_ps(a.low, a.high);
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

TENON_LANE bool all_finite(F32x16 a) {
  const __m256 infinity = _mm256_set1_ps(std::numeric_limits<float>::infinity());
  const F32x16 magnitude = abs(a);
  return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(magnitude.low, infinity, _CMP_LT_OQ),
                                          _mm256_cmp_ps(magnitude.high, infinity, _CMP_LT_OQ))) ==
         255;
}
TENON_LANE I32x16 broadcast_int(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
TENON_LANE void store_rounded_bytes(std::int8_t* p, F32x16 a) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)), 0xd8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
TENON_LANE __m256 load_bytes_8(const std::int8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
TENON_LANE F32x16 load_bytes(const std::int8_t* p) {
  return {load_bytes_8(p), load_bytes_8(p + 8)};
}
template <int Mask>
TENON_LANE __m256 load_fields_8(const std::byte* p, int shift) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i shifted = _mm256_srlv_epi32(words, _mm256_set1_epi32(shift));
  return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(Mask)));
}
template <int Mask>
TENON_LANE F32x16 load_fields(const std::byte* p, int shift) {
  return {load_fields_8<Mask>(p, shift), load_fields_8<Mask>(p + 32, shift)};
}
TENON_LANE std::int32_t sum_bytes16(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i shifted = _mm_xor_si128(bytes, _mm_set1_epi8(-128));  // + 128, unsigned
  const __m128i both = _mm_sad_epu8(shifted, _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_add_epi64(both, _mm_unpackhi_epi64(both, both))) - 16 * 128;
}

inline constexpr int registers = 8;

struct Bytes64 {
  __m256i low, high;
};
TENON_LANE __m256i load_bytes32(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
TENON_LANE Bytes64 load_bytes64(const std::byte* p) {
  return {load_bytes32(p), load_bytes32(p + 32)};
}
TENON_LANE Bytes64 broadcast_four(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm256_set1_epi32(four), _mm256_set1_epi32(four)};
}
// Bits shifted right by n, left by -n, those of a neighbour coming in.
TENON_LANE __m256i shift_bits(__m256i a, int n) {
  return n >= 0 ? _mm256_srli_epi16(a, n) : _mm256_slli_epi16(a, -n);
}
template <int Width>
TENON_LANE Bytes64 fields(Bytes64 a, int from) {
  const __m256i mask = _mm256_set1_epi8((1 << Width) - 1);
  return {_mm256_and_si256(shift_bits(a.low, from), mask),
          _mm256_and_si256(shift_bits(a.high, from), mask)};
}
template <int Width, int To>
TENON_LANE Bytes64 with_fields(Bytes64 low, Bytes64 a, int from) {
  const __m256i mask = _mm256_set1_epi8(((1 << Width) - 1) << To);
  return {_mm256_or_si256(low.low, _mm256_and_si256(shift_bits(a.low, from - To), mask)),
          _mm256_or_si256(low.high, _mm256_and_si256(shift_bits(a.high, from - To), mask))};
}
TENON_LANE Bytes64 e2m1_plus_12(Bytes64 a) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  return {_mm256_shuffle_epi8(table, a.low), _mm256_shuffle_epi8(table, a.high)};
}
TENON_LANE Bytes64 iq4_plus_128(Bytes64 a) {
  const __m256i table = _mm256_xor_si256(
      _mm256_broadcastsi128_si256(
          _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)),
      _mm256_set1_epi8(-128));
  return {_mm256_shuffle_epi8(table, a.low), _mm256_shuffle_epi8(table, a.high)};
}
template <int Bits>
TENON_LANE F32x16 widen_bytes_at(Bytes64 a) {
  const __m256i mask = _mm256_set1_epi32(255);
  return {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(a.low, Bits), mask)),
          _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(a.high, Bits), mask))};
}
TENON_LANE void widen_bytes64(Bytes64 a, F32x16 (&to)[4]) {
  to[0] = widen_bytes_at<0>(a);
  to[1] = widen_bytes_at<8>(a);
  to[2] = widen_bytes_at<16>(a);
  to[3] = widen_bytes_at<24>(a);
}
TENON_LANE F32x16 float_of_bits(I32x16 a) {
  return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)};
}
// Pairs of products are added in 16 bits: |w| <= 128 keeps them exact, the sign of w goes to x.
struct ByteDot {
  static constexpr bool signs_wide = true;
  static constexpr int one = 2, four = 1, eight = 0;
  TENON_LANE static __m256i add_pairs(__m256i acc, __m256i w, __m256i x) {
    return _mm256_add_epi32(acc,
                            _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
  }
  TENON_LANE static __m256i add_signed(__m256i acc, __m256i stored, __m256i x) {
    const __m256i w = _mm256_xor_si256(stored, _mm256_set1_epi8(-128));
    return add_pairs(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  }
  TENON_LANE static I32x16 narrow(I32x16 acc, Bytes64 w, Bytes64 x) {
    return {add_pairs(acc.low, w.low, x.low), add_pairs(acc.high, w.high, x.high)};
  }
  TENON_LANE static I32x16 bytes(I32x16 acc, Bytes64 w, Bytes64 x) {
    return {add_signed(acc.low, w.low, x.low), add_signed(acc.high, w.high, x.high)};
  }
};

}  // namespace tenon::inline TENON_ABI::avx2

#undef TENON_LANE
#endif
