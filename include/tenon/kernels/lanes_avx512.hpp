#pragma once
// Sixteen float lanes in one AVX-512 register. See lanes_scalar.hpp for what each operation means.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../core/abi.hpp"

#define TENON_LANE \
  TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma") __attribute__((always_inline)) inline
#if defined(__GNUC__) && \
    !defined(__clang__)  // g++ 12: unmasked intrinsics read an undefined register
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace tenon::inline TENON_ABI::avx512 {

inline constexpr int accumulators = 24;  // of 32 registers

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};

TENON_LANE F32x16 broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
TENON_LANE F32x16 zero() {
  return {_mm512_setzero_ps()};
}
TENON_LANE __mmask16 first(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}
TENON_LANE F32x16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
TENON_LANE F32x16 load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n), p)};
}
TENON_LANE F32x16 load_half(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
TENON_LANE F32x16 load_bf16(const std::uint16_t* p) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
TENON_LANE F32x16 broadcast_half(const std::byte* p) {
  std::int16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return {_mm512_cvtph_ps(_mm256_set1_epi16(bits))};
}
TENON_LANE F32x16 load_half_scales(const std::byte* p) {
  const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  const __m512i bits =
      _mm512_mask_mov_epi32(normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), tiny);
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(e, _mm512_set1_epi32(255));
  return {_mm512_castsi512_ps(_mm512_mask_mov_epi32(bits, nan, _mm512_set1_epi32(0x7fc00000)))};
}
TENON_LANE void store(float* p, F32x16 a) {
  _mm512_storeu_ps(p, a.v);
}
TENON_LANE void store_first(float* p, F32x16 a, int n) {
  _mm512_mask_storeu_ps(p, first(n), a.v);
}
TENON_LANE void store_half(std::uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
TENON_LANE F32x16 add(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
TENON_LANE F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
TENON_LANE F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
TENON_LANE F32x16 div(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
TENON_LANE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
TENON_LANE F32x16 larger(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
TENON_LANE F32x16 smaller(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
TENON_LANE F32x16 abs(F32x16 a) {
  return {_mm512_abs_ps(a.v)};
}
TENON_LANE F32x16 zero_below(F32x16 x, F32x16 cut, F32x16 value) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, cut.v, _CMP_NLT_UQ), value.v)};
}
TENON_LANE F32x16 select(unsigned bits, F32x16 a, F32x16 b) {
  return {_mm512_mask_blend_ps(static_cast<__mmask16>(bits), b.v, a.v)};
}
TENON_LANE F32x16 power_of_two(F32x16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvttps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}
TENON_LANE F32x16 swap_pairs(F32x16 a) {
  return {_mm512_permute_ps(a.v, 0xb1)};
}
// 64 shuffles: pairs of rows, pairs of pairs, then the 128-bit quarters into their order.
TENON_LANE void transpose(F32x16 (&r)[16]) {
  __m512 b[16];
  TENON_UNROLL
  for (int i = 0; i < 16; i += 4) {  // b[i + c]: columns c, 4 + c, 8 + c, 12 + c of rows i..i+3
    const __m512 a0 = _mm512_unpacklo_ps(r[i].v, r[i + 1].v);
    const __m512 a1 = _mm512_unpackhi_ps(r[i].v, r[i + 1].v);
    const __m512 a2 = _mm512_unpacklo_ps(r[i + 2].v, r[i + 3].v);
    const __m512 a3 = _mm512_unpackhi_ps(r[i + 2].v, r[i + 3].v);
    b[i] = _mm512_shuffle_ps(a0, a2, 0x44);
    b[i + 1] = _mm512_shuffle_ps(a0, a2, 0xee);
    b[i + 2] = _mm512_shuffle_ps(a1, a3, 0x44);
    b[i + 3] = _mm512_shuffle_ps(a1, a3, 0xee);
  }
  TENON_UNROLL
  for (int c = 0; c < 4; ++c) {
    const __m512 a0 = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88);  // columns c, 8 + c
    const __m512 a1 = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xdd);  // columns 4 + c, 12 + c
    const __m512 a2 = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88);
    const __m512 a3 = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xdd);
    r[c].v = _mm512_shuffle_f32x4(a0, a2, 0x88);
    r[4 + c].v = _mm512_shuffle_f32x4(a1, a3, 0x88);
    r[8 + c].v = _mm512_shuffle_f32x4(a0, a2, 0xdd);
    r[12 + c].v = _mm512_shuffle_f32x4(a1, a3, 0xdd);
  }
}
TENON_LANE __m512i two_rows(const std::byte* low, const std::byte* high) {
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
  const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high));
  return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}
// 32 shuffles: by 16 bits, by 32, by 64, then the 128-bit quarters into their order.
TENON_LANE void transpose_words(const std::byte* rows, std::ptrdiff_t stride, std::uint16_t* to,
                                std::ptrdiff_t step) {
  __m512i a[8], b[8];
  TENON_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const std::byte* at = rows + i * stride;
    const __m512i r0 = two_rows(at, at + 8 * stride);
    const __m512i r1 = two_rows(at + stride, at + 9 * stride);
    a[i] = _mm512_unpacklo_epi16(r0, r1);
    a[i + 1] = _mm512_unpackhi_epi16(r0, r1);
  }
  TENON_UNROLL
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi32(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi32(a[i + 1], a[i + 3]);
  }
  TENON_UNROLL
  for (int i = 0; i < 8; ++i) {  // columns i and 8 + i of rows 0 to 7, then of rows 8 to 15
    const __m512i both = i % 2 == 0 ? _mm512_unpacklo_epi64(b[i / 2], b[4 + i / 2])
                                    : _mm512_unpackhi_epi64(b[i / 2], b[4 + i / 2]);
    const __m512i ordered = _mm512_shuffle_i64x2(both, both, 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * step), _mm512_castsi512_si256(ordered));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (8 + i) * step),
                        _mm512_extracti64x4_epi64(ordered, 1));
  }
}
TENON_LANE float sum(F32x16 a) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
TENON_LANE float largest(F32x16 a) {
  const __m256 by8 = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

TENON_LANE bool all_finite(F32x16 a) {
  constexpr int infinities_and_nans = 0x01 | 0x08 | 0x10 | 0x80;
  return _mm512_fpclass_ps_mask(a.v, infinities_and_nans) == 0;
}
TENON_LANE I32x16 broadcast_int(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
TENON_LANE void store_rounded_bytes(std::int8_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a.v)));
}
TENON_LANE F32x16 load_bytes(const std::int8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
template <int Mask>
TENON_LANE F32x16 load_fields(const std::byte* p, int shift) {
  const __m512i words = _mm512_srlv_epi32(_mm512_loadu_si512(p), _mm512_set1_epi32(shift));
  return {_mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(Mask)))};
}
TENON_LANE std::int32_t sum_bytes16(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i shifted = _mm_xor_si128(bytes, _mm_set1_epi8(-128));  // + 128, unsigned
  const __m128i both = _mm_sad_epu8(shifted, _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_add_epi64(both, _mm_unpackhi_epi64(both, both))) - 16 * 128;
}

inline constexpr int registers = 32;

struct Bytes64 {
  __m512i v;
};
TENON_LANE Bytes64 load_bytes64(const std::byte* p) {
  return {_mm512_loadu_si512(p)};
}
TENON_LANE Bytes64 broadcast_four(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return {_mm512_set1_epi32(four)};
}
// Bits shifted right by n, left by -n, those of a neighbour coming in.
TENON_LANE __m512i shift_bits(__m512i a, int n) {
  return n >= 0 ? _mm512_srli_epi16(a, static_cast<unsigned>(n))
                : _mm512_slli_epi16(a, static_cast<unsigned>(-n));
}
template <int Width>
TENON_LANE Bytes64 fields(Bytes64 a, int from) {
  return {_mm512_and_si512(shift_bits(a.v, from), _mm512_set1_epi8((1 << Width) - 1))};
}
template <int Width, int To>
TENON_LANE Bytes64 with_fields(Bytes64 low, Bytes64 a, int from) {
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(((1 << Width) - 1) << To));
  constexpr int first_or_both = 0xf8;  // low | (shifted & mask)
  return {_mm512_ternarylogic_epi32(low.v, shift_bits(a.v, from - To), mask, first_or_both)};
}
TENON_LANE Bytes64 e2m1_plus_12(Bytes64 a) {
  const __m128i table = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), a.v)};
}
TENON_LANE Bytes64 iq4_plus_128(Bytes64 a) {
  const __m128i levels =
      _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
  const __m128i table = _mm_xor_si128(levels, _mm_set1_epi8(-128));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), a.v)};
}
template <int Bits>
TENON_LANE F32x16 widen_bytes_at(Bytes64 a) {
  return {
      _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(a.v, Bits), _mm512_set1_epi32(255)))};
}
TENON_LANE void widen_bytes64(Bytes64 a, F32x16 (&to)[4]) {
  to[0] = widen_bytes_at<0>(a);
  to[1] = widen_bytes_at<8>(a);
  to[2] = widen_bytes_at<16>(a);
  to[3] = widen_bytes_at<24>(a);
}
TENON_LANE F32x16 float_of_bits(I32x16 a) {
  return {_mm512_castsi512_ps(a.v)};
}
// Without VNNI: pairs of products are added in 16 bits, which |w| <= 128 keeps exact; the sign of w
// goes to x.
struct ByteDot {
  static constexpr bool signs_wide = true;
  static constexpr int one = 4, four = 4, eight = 2;
  TENON_LANE static I32x16 narrow(I32x16 acc, Bytes64 w, Bytes64 x) {
    const __m512i pairs = _mm512_maddubs_epi16(w.v, x.v);
    return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
  }
  TENON_LANE static I32x16 bytes(I32x16 acc, Bytes64 stored, Bytes64 x) {
    const __m512i w = _mm512_xor_si512(stored.v, _mm512_set1_epi8(-128));
    const __m512i signed_x =
        _mm512_mask_sub_epi8(x.v, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x.v);
    return narrow(acc, {_mm512_abs_epi8(w)}, {signed_x});
  }
};

}  // namespace tenon::inline TENON_ABI::avx512

// With VNNI the products of all four bytes and the sum are one instruction, on the stored w + 128.
namespace tenon::inline TENON_ABI::avx512vnni {
using namespace avx512;  // NOLINT(google-build-using-namespace): all but the dot product

struct ByteDot {
  static constexpr bool signs_wide = false;
  static constexpr int one = 6, four = 4, eight = 2;
  TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni")
  __attribute__((always_inline)) static I32x16 narrow(I32x16 acc, Bytes64 w, Bytes64 x) {
    return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)};
  }
  TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni")
  __attribute__((always_inline)) static I32x16 bytes(I32x16 acc, Bytes64 w, Bytes64 x) {
    return narrow(acc, w, x);
  }
};

}  // namespace tenon::inline TENON_ABI::avx512vnni

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#undef TENON_LANE
#endif
