#pragma once
// Sixteen float lanes in four NEON registers, which every 64-bit Arm processor has. See
// lanes_scalar.hpp for what each operation means.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../core/abi.hpp"

// No more than NEON, so that the lanes fit into leaves of any instruction set, whatever the flags.
#define TENON_LANE TENON_TARGET("+nothing+simd") __attribute__((always_inline)) inline

namespace tenon::inline TENON_ABI::neon {

inline constexpr int accumulators = 4;  // of 32 registers, four to each

struct F32x16 {
  float32x4_t q0, q1, q2, q3;
};
struct I32x16 {
  int32x4_t q0, q1, q2, q3;
};

TENON_LANE F32x16 broadcast(float x) {
  const float32x4_t all = vdupq_n_f32(x);
  return {all, all, all, all};
}
TENON_LANE F32x16 zero() {
  return broadcast(0.0f);
}
TENON_LANE F32x16 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
// At most four lanes, n of any sign.
TENON_LANE float32x4_t load_first_4(const float* p, int n) {
  if (n >= 4) return vld1q_f32(p);
  float32x4_t v = vdupq_n_f32(0.0f);
  if (n > 0) v = vld1q_lane_f32(p, v, 0);
  if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
  if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
  return v;
}
TENON_LANE F32x16 load_first(const float* p, int n) {
  if (n == 16) return load(p);
  return {load_first_4(p, n), load_first_4(p + 4, n - 4), load_first_4(p + 8, n - 8),
          load_first_4(p + 12, n - 12)};
}
TENON_LANE float32x4_t load_half_4(const std::uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
TENON_LANE F32x16 load_half(const std::uint16_t* p) {
  return {load_half_4(p), load_half_4(p + 4), load_half_4(p + 8), load_half_4(p + 12)};
}
TENON_LANE F32x16 broadcast_half(const std::byte* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  const float32x4_t scale = vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)));
  return {scale, scale, scale, scale};
}
TENON_LANE float32x4_t load_bf16_4(const std::uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
TENON_LANE F32x16 load_bf16(const std::uint16_t* p) {
  return {load_bf16_4(p), load_bf16_4(p + 4), load_bf16_4(p + 8), load_bf16_4(p + 12)};
}
TENON_LANE float32x4_t half_scales_4(uint16x4_t exponents) {
  const uint32x4_t e = vmovl_u16(exponents);
  const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
  const uint32x4_t tiny = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(e));
  const uint32x4_t bits = vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), tiny, normal);
  const uint32x4_t nan = vceqq_u32(e, vdupq_n_u32(255));
  return vreinterpretq_f32_u32(vbslq_u32(nan, vdupq_n_u32(0x7fc00000), bits));
}
TENON_LANE F32x16 load_half_scales(const std::byte* p) {
  const uint8x16_t e = vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
  const uint16x8_t low = vmovl_u8(vget_low_u8(e)), high = vmovl_high_u8(e);
  return {half_scales_4(vget_low_u16(low)), half_scales_4(vget_high_u16(low)),
          half_scales_4(vget_low_u16(high)), half_scales_4(vget_high_u16(high))};
}
TENON_LANE void store(float* p, F32x16 a) {
  vst1q_f32(p, a.q0);
  vst1q_f32(p + 4, a.q1);
  vst1q_f32(p + 8, a.q2);
  vst1q_f32(p + 12, a.q3);
}
TENON_LANE void store_first_4(float* p, float32x4_t v, int n) {
  if (n >= 4) return vst1q_f32(p, v);
  if (n > 0) vst1q_lane_f32(p, v, 0);
  if (n > 1) vst1q_lane_f32(p + 1, v, 1);
  if (n > 2) vst1q_lane_f32(p + 2, v, 2);
}
TENON_LANE void store_first(float* p, F32x16 a, int n) {
  if (n == 16) return store(p, a);
  store_first_4(p, a.q0, n);
  store_first_4(p + 4, a.q1, n - 4);
  store_first_4(p + 8, a.q2, n - 8);
  store_first_4(p + 12, a.q3, n - 12);
}
TENON_LANE void store_half_4(std::uint16_t* p, float32x4_t v) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}
TENON_LANE void store_half(std::uint16_t* p, F32x16 a) {
  store_half_4(p, a.q0);
  store_half_4(p + 4, a.q1);
  store_half_4(p + 8, a.q2);
  store_half_4(p + 12, a.q3);
}
TENON_LANE F32x16 add(F32x16 a, F32x16 b) {
  return {vaddq_f32(a.q0, b.q0), vaddq_f32(a.q1, b.q1), vaddq_f32(a.q2, b.q2),
          vaddq_f32(a.q3, b.q3)};
}
TENON_LANE F32x16 sub(F32x16 a, F32x16 b) {
  return {vsubq_f32(a.q0, b.q0), vsubq_f32(a.q1, b.q1), vsubq_f32(a.q2, b.q2),
          vsubq_f32(a.q3, b.q3)};
}
TENON_LANE F32x16 mul(F32x16 a, F32x16 b) {
  return {vmulq_f32(a.q0, b.q0), vmulq_f32(a.q1, b.q1), vmulq_f32(a.q2, b.q2),
          vmulq_f32(a.q3, b.q3)};
}
TENON_LANE F32x16 div(F32x16 a, F32x16 b) {
  return {vdivq_f32(a.q0, b.q0), vdivq_f32(a.q1, b.q1), vdivq_f32(a.q2, b.q2),
          vdivq_f32(a.q3, b.q3)};
}
TENON_LANE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {vfmaq_f32(c.q0, a.q0, b.q0), vfmaq_f32(c.q1, a.q1, b.q1), vfmaq_f32(c.q2, a.q2, b.q2),
          vfmaq_f32(c.q3, a.q3, b.q3)};
}
// By comparison: the instructions for maxima give the NaN whichever operand it is.
TENON_LANE float32x4_t larger_4(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
TENON_LANE F32x16 larger(F32x16 a, F32x16 b) {
  return {larger_4(a.q0, b.q0), larger_4(a.q1, b.q1), larger_4(a.q2, b.q2), larger_4(a.q3, b.q3)};
}
TENON_LANE float32x4_t smaller_4(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcltq_f32(a, b), a, b);
}
TENON_LANE F32x16 smaller(F32x16 a, F32x16 b) {
  return {smaller_4(a.q0, b.q0), smaller_4(a.q1, b.q1), smaller_4(a.q2, b.q2),
          smaller_4(a.q3, b.q3)};
}
TENON_LANE F32x16 abs(F32x16 a) {
  return {vabsq_f32(a.q0), vabsq_f32(a.q1), vabsq_f32(a.q2), vabsq_f32(a.q3)};
}
TENON_LANE float32x4_t zero_below_4(float32x4_t x, float32x4_t cut, float32x4_t value) {
  return vbslq_f32(vcltq_f32(x, cut), vdupq_n_f32(0.0f), value);
}
TENON_LANE F32x16 zero_below(F32x16 x, F32x16 cut, F32x16 value) {
  return {zero_below_4(x.q0, cut.q0, value.q0), zero_below_4(x.q1, cut.q1, value.q1),
          zero_below_4(x.q2, cut.q2, value.q2), zero_below_4(x.q3, cut.q3, value.q3)};
}
TENON_LANE float32x4_t select_4(unsigned bits, float32x4_t a, float32x4_t b) {
  const uint32x4_t each = {1, 2, 4, 8};
  return vbslq_f32(vtstq_u32(vdupq_n_u32(bits), each), a, b);
}
TENON_LANE F32x16 select(unsigned bits, F32x16 a, F32x16 b) {
  return {select_4(bits, a.q0, b.q0), select_4(bits >> 4, a.q1, b.q1),
          select_4(bits >> 8, a.q2, b.q2), select_4(bits >> 12, a.q3, b.q3)};
}
TENON_LANE float32x4_t power_of_two_4(float32x4_t n) {
  const int32x4_t biased = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
  return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
}
TENON_LANE F32x16 power_of_two(F32x16 n) {
  return {power_of_two_4(n.q0), power_of_two_4(n.q1), power_of_two_4(n.q2), power_of_two_4(n.q3)};
}
TENON_LANE F32x16 swap_pairs(F32x16 a) {
  return {vrev64q_f32(a.q0), vrev64q_f32(a.q1), vrev64q_f32(a.q2), vrev64q_f32(a.q3)};
}
// Rows a to d of four become its columns.
TENON_LANE void transpose_4(float32x4_t& a, float32x4_t& b, float32x4_t& c, float32x4_t& d) {
  const float64x2_t ab0 = vreinterpretq_f64_f32(vtrn1q_f32(a, b));
  const float64x2_t ab1 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
  const float64x2_t cd0 = vreinterpretq_f64_f32(vtrn1q_f32(c, d));
  const float64x2_t cd1 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
  a = vreinterpretq_f32_f64(vtrn1q_f64(ab0, cd0));
  b = vreinterpretq_f32_f64(vtrn1q_f64(ab1, cd1));
  c = vreinterpretq_f32_f64(vtrn2q_f64(ab0, cd0));
  d = vreinterpretq_f32_f64(vtrn2q_f64(ab1, cd1));
}
template <float32x4_t F32x16::*Q>
TENON_LANE void transpose_4_of(F32x16* r) {
  transpose_4(r[0].*Q, r[1].*Q, r[2].*Q, r[3].*Q);
}
// Quarter P of rows r[0, 4) changes places with quarter Q of s[0, 4).
template <float32x4_t F32x16::*P, float32x4_t F32x16::*Q>
TENON_LANE void swap_4(F32x16* r, F32x16* s) {
  TENON_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float32x4_t other = r[i].*P;
    r[i].*P = s[i].*Q;
    s[i].*Q = other;
  }
}
// Sixteen blocks of 4 x 4; those off the diagonal change places.
TENON_LANE void transpose(F32x16 (&r)[16]) {
  TENON_UNROLL
  for (int i = 0; i < 16; i += 4) {
    transpose_4_of<&F32x16::q0>(r + i);
    transpose_4_of<&F32x16::q1>(r + i);
    transpose_4_of<&F32x16::q2>(r + i);
    transpose_4_of<&F32x16::q3>(r + i);
  }
  swap_4<&F32x16::q1, &F32x16::q0>(r, r + 4);
  swap_4<&F32x16::q2, &F32x16::q0>(r, r + 8);
  swap_4<&F32x16::q3, &F32x16::q0>(r, r + 12);
  swap_4<&F32x16::q2, &F32x16::q1>(r + 4, r + 8);
  swap_4<&F32x16::q3, &F32x16::q1>(r + 4, r + 12);
  swap_4<&F32x16::q3, &F32x16::q2>(r + 8, r + 12);
}
// Four blocks of 8 x 8: by 16 bits, by 32, by 64.
TENON_LANE void transpose_words(const std::byte* rows, std::ptrdiff_t stride, std::uint16_t* to,
                                std::ptrdiff_t step) {
  for (int block = 0; block < 4; ++block) {
    const int row = block / 2 * 8, column = block % 2 * 8;
    uint32x4_t a[8];  // a[i + c]: rows i and i + 1 of columns c, 2 + c, 4 + c, 6 + c
    uint64x2_t b[8];  // b[i + c]: rows i to i + 3 of columns c and 4 + c
    TENON_UNROLL
    for (int i = 0; i < 8; i += 2) {
      const std::byte* at = rows + (row + i) * stride + column * 2;
      const uint16x8_t r0 =
          vreinterpretq_u16_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(at)));
      const uint16x8_t r1 =
          vreinterpretq_u16_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(at + stride)));
      a[i] = vreinterpretq_u32_u16(vtrn1q_u16(r0, r1));
      a[i + 1] = vreinterpretq_u32_u16(vtrn2q_u16(r0, r1));
    }
    TENON_UNROLL
    for (int i = 0; i < 8; i += 4) {
      b[i] = vreinterpretq_u64_u32(vtrn1q_u32(a[i], a[i + 2]));
      b[i + 1] = vreinterpretq_u64_u32(vtrn1q_u32(a[i + 1], a[i + 3]));
      b[i + 2] = vreinterpretq_u64_u32(vtrn2q_u32(a[i], a[i + 2]));
      b[i + 3] = vreinterpretq_u64_u32(vtrn2q_u32(a[i + 1], a[i + 3]));
    }
    TENON_UNROLL
    for (int c = 0; c < 4; ++c) {
      std::uint16_t* at = to + (column + c) * step + row;
      vst1q_u16(at, vreinterpretq_u16_u64(vtrn1q_u64(b[c], b[4 + c])));
      vst1q_u16(at + 4 * step, vreinterpretq_u16_u64(vtrn2q_u64(b[c], b[4 + c])));
    }
  }
}
TENON_LANE float sum(F32x16 a) {
  const float32x4_t by4 = vaddq_f32(vaddq_f32(a.q0, a.q2), vaddq_f32(a.q1, a.q3));
  const float32x2_t by2 = vadd_f32(vget_low_f32(by4), vget_high_f32(by4));
  return vget_lane_f32(by2, 0) + vget_lane_f32(by2, 1);
}
TENON_LANE float largest(F32x16 a) {
  const float32x4_t by4 = larger_4(larger_4(a.q0, a.q2), larger_4(a.q1, a.q3));
  const float32x4_t by2 = larger_4(by4, vextq_f32(by4, by4, 2));
  return vgetq_lane_f32(larger_4(by2, vdupq_laneq_f32(by2, 1)), 0);
}

TENON_LANE bool all_finite(F32x16 a) {
  const float32x4_t infinity = vdupq_n_f32(std::numeric_limits<float>::infinity());
  const uint32x4_t low = vandq_u32(vcaltq_f32(a.q0, infinity), vcaltq_f32(a.q1, infinity));
  const uint32x4_t high = vandq_u32(vcaltq_f32(a.q2, infinity), vcaltq_f32(a.q3, infinity));
  return vminvq_u32(vandq_u32(low, high)) != 0;
}
TENON_LANE I32x16 broadcast_int(std::int32_t x) {
  const int32x4_t all = vdupq_n_s32(x);
  return {all, all, all, all};
}
TENON_LANE void store_rounded_bytes(std::int8_t* p, F32x16 a) {
  const int16x4_t low = vqmovn_s32(vcvtnq_s32_f32(a.q0));
  const int16x4_t high = vqmovn_s32(vcvtnq_s32_f32(a.q2));
  const int8x8_t bytes = vqmovn_s16(vqmovn_high_s32(low, vcvtnq_s32_f32(a.q1)));
  vst1q_s8(p, vqmovn_high_s16(bytes, vqmovn_high_s32(high, vcvtnq_s32_f32(a.q3))));
}
TENON_LANE F32x16 load_bytes(const std::int8_t* p) {
  const int8x16_t bytes = vld1q_s8(p);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
          vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
}
template <int Mask>
TENON_LANE float32x4_t load_fields_4(const std::byte* p, int shift) {
  const uint32x4_t words = vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(p)));
  return vcvtq_f32_u32(vandq_u32(vshlq_u32(words, vdupq_n_s32(-shift)), vdupq_n_u32(Mask)));
}
template <int Mask>
TENON_LANE F32x16 load_fields(const std::byte* p, int shift) {
  return {load_fields_4<Mask>(p, shift), load_fields_4<Mask>(p + 16, shift),
          load_fields_4<Mask>(p + 32, shift), load_fields_4<Mask>(p + 48, shift)};
}
TENON_LANE std::int32_t sum_bytes16(const std::int8_t* p) {
  return vaddlvq_s8(vld1q_s8(p));
}

inline constexpr int registers = 8;

struct Bytes64 {
  uint8x16_t q0, q1, q2, q3;
};
TENON_LANE Bytes64 load_bytes64(const std::byte* from) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(from);
  return {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)};
}
TENON_LANE void store_bytes64(std::byte* to, Bytes64 a) {
  auto* p = reinterpret_cast<std::uint8_t*>(to);
  vst1q_u8(p, a.q0);
  vst1q_u8(p + 16, a.q1);
  vst1q_u8(p + 32, a.q2);
  vst1q_u8(p + 48, a.q3);
}
TENON_LANE Bytes64 broadcast_four(const std::int8_t* p) {
  std::uint32_t four;
  std::memcpy(&four, p, 4);
  const uint8x16_t all = vreinterpretq_u8_u32(vdupq_n_u32(four));
  return {all, all, all, all};
}
// Bits of every byte shifted right by n, left by -n.
TENON_LANE uint8x16_t shift_bits(uint8x16_t a, int n) {
  return vshlq_u8(a, vdupq_n_s8(static_cast<std::int8_t>(-n)));
}
template <int Width>
TENON_LANE Bytes64 fields(Bytes64 a, int from) {
  const uint8x16_t mask = vdupq_n_u8((1 << Width) - 1);
  return {vandq_u8(shift_bits(a.q0, from), mask), vandq_u8(shift_bits(a.q1, from), mask),
          vandq_u8(shift_bits(a.q2, from), mask), vandq_u8(shift_bits(a.q3, from), mask)};
}
template <int Width, int To>
TENON_LANE Bytes64 with_fields(Bytes64 low, Bytes64 a, int from) {
  const uint8x16_t mask = vdupq_n_u8(((1 << Width) - 1) << To);
  return {vorrq_u8(low.q0, vandq_u8(shift_bits(a.q0, from - To), mask)),
          vorrq_u8(low.q1, vandq_u8(shift_bits(a.q1, from - To), mask)),
          vorrq_u8(low.q2, vandq_u8(shift_bits(a.q2, from - To), mask)),
          vorrq_u8(low.q3, vandq_u8(shift_bits(a.q3, from - To), mask))};
}
TENON_LANE Bytes64 at_codes(uint8x16_t table, Bytes64 a) {
  return {vqtbl1q_u8(table, a.q0), vqtbl1q_u8(table, a.q1), vqtbl1q_u8(table, a.q2),
          vqtbl1q_u8(table, a.q3)};
}
TENON_LANE Bytes64 e2m1_plus_12(Bytes64 a) {
  const uint8x16_t table = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  return at_codes(table, a);
}
TENON_LANE Bytes64 iq4_plus_128(Bytes64 a) {
  const uint8x16_t table = {1,   24,  45,  63,  79,  93,  106, 118,
                            129, 141, 153, 166, 181, 197, 217, 241};
  return at_codes(table, a);
}
// Byte J of each group of four.
template <int J>
TENON_LANE float32x4_t widen_bytes_4(uint8x16_t bytes) {
  uint32x4_t v = vreinterpretq_u32_u8(bytes);
  if constexpr (J < 3) v = vshlq_n_u32(v, 24 - 8 * J);
  return vcvtq_f32_u32(vshrq_n_u32(v, 24));
}
template <int J>
TENON_LANE F32x16 widen_bytes_at(Bytes64 a) {
  return {widen_bytes_4<J>(a.q0), widen_bytes_4<J>(a.q1), widen_bytes_4<J>(a.q2),
          widen_bytes_4<J>(a.q3)};
}
TENON_LANE void widen_bytes64(Bytes64 a, F32x16 (&to)[4]) {
  to[0] = widen_bytes_at<0>(a);
  to[1] = widen_bytes_at<1>(a);
  to[2] = widen_bytes_at<2>(a);
  to[3] = widen_bytes_at<3>(a);
}
TENON_LANE F32x16 float_of_bits(I32x16 a) {
  return {vreinterpretq_f32_s32(a.q0), vreinterpretq_f32_s32(a.q1), vreinterpretq_f32_s32(a.q2),
          vreinterpretq_f32_s32(a.q3)};
}
// A stored w + 128 as the signed w.
TENON_LANE Bytes64 signed_of_stored(Bytes64 a) {
  const uint8x16_t sign = vdupq_n_u8(128);
  return {veorq_u8(a.q0, sign), veorq_u8(a.q1, sign), veorq_u8(a.q2, sign), veorq_u8(a.q3, sign)};
}
// Pairs of products are added in 16 bits: |w| <= 128 and |x| <= 127 keep them exact.
struct ByteDot {
  static constexpr bool signs_wide = true;
  static constexpr int one = 2, four = 1, eight = 0;
  TENON_LANE static int32x4_t add_products(int32x4_t acc, uint8x16_t weights, uint8x16_t values) {
    const int8x16_t w = vreinterpretq_s8_u8(weights), x = vreinterpretq_s8_u8(values);
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x));
    acc = vpadalq_s16(acc, vpaddq_s16(low, vmull_high_s8(w, x)));
    __asm__ volatile("" : "+w"(acc));  // in this order: GCC would load all weights of a unit first
    return acc;
  }
  TENON_LANE static I32x16 narrow(I32x16 acc, Bytes64 w, Bytes64 x) {
    return {add_products(acc.q0, w.q0, x.q0), add_products(acc.q1, w.q1, x.q1),
            add_products(acc.q2, w.q2, x.q2), add_products(acc.q3, w.q3, x.q3)};
  }
  TENON_LANE static I32x16 bytes(I32x16 acc, Bytes64 w, Bytes64 x) {
    return narrow(acc, signed_of_stored(w), x);
  }
};

}  // namespace tenon::inline TENON_ABI::neon

#undef TENON_LANE
#endif
