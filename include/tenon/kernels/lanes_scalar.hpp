#pragma once
// Sixteen float lanes in plain C++: the definition of what every other instruction set computes.
// All leaves are written on these operations, each of which is one IEEE operation per lane in every
// implementation, so a leaf gives the same bits on every machine. `a * b + c` is never written as
// such: a compiler may contract it; fma() says that it is one rounding.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "../quant/half.hpp"
#include "../quant/iq4_nl.hpp"
#include "../quant/mxfp4.hpp"

namespace tenon::inline TENON_ABI::scalar {

// How many F32x16 accumulators a leaf may keep in registers.
inline constexpr int accumulators = 4;

struct F32x16 {
  float lane[16];
};
struct I32x16 {
  std::int32_t lane[16];
};

namespace detail {
template <class Fn>
inline F32x16 each(Fn fn) {
  F32x16 out;
  for (int i = 0; i < 16; ++i) out.lane[i] = fn(i);
  return out;
}
}  // namespace detail

inline F32x16 broadcast(float x) {
  return detail::each([=](int) { return x; });
}
inline F32x16 zero() {
  return broadcast(0.0f);
}
inline F32x16 load(const float* p) {
  F32x16 out;
  std::memcpy(out.lane, p, sizeof out.lane);
  return out;
}
// The first n lanes from memory, zeros after them; 0 <= n <= 16.
inline F32x16 load_first(const float* p, int n) {
  F32x16 out = zero();
  if (n > 0) std::memcpy(out.lane, p, static_cast<std::size_t>(n) * sizeof(float));
  return out;
}
inline F32x16 load_half(const std::uint16_t* p) {
  return detail::each([=](int i) { return float_of_half(p[i]); });
}
inline F32x16 load_bf16(const std::uint16_t* p) {
  return detail::each([=](int i) { return float_of_bf16(p[i]); });
}
// The half at p, which need not be aligned, in all lanes.
inline F32x16 broadcast_half(const std::byte* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return broadcast(float_of_half(bits));
}
// 2^(e - 128) for sixteen bytes e, NaN for 255: half the scales of MXFP4 blocks.
inline F32x16 load_half_scales(const std::byte* p) {
  return detail::each(
      [=](int i) { return tenon::detail::half_scale_of(std::to_integer<std::uint8_t>(p[i])); });
}
inline void store(float* p, F32x16 a) {
  std::memcpy(p, a.lane, sizeof a.lane);
}
inline void store_first(float* p, F32x16 a, int n) {
  if (n > 0) std::memcpy(p, a.lane, static_cast<std::size_t>(n) * sizeof(float));
}
inline void store_half(std::uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = half_of_float(a.lane[i]);
}

inline F32x16 add(F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline F32x16 sub(F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline F32x16 mul(F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline F32x16 div(F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return detail::each([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
}
// The second operand when the lanes do not compare, so larger(low, x) passes a NaN in x on.
inline F32x16 larger(F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline F32x16 smaller(F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline F32x16 abs(F32x16 a) {
  return detail::each([&](int i) { return std::fabs(a.lane[i]); });
}
// x below `cut` gives 0, anything else (NaN too) gives `value`.
inline F32x16 zero_below(F32x16 x, F32x16 cut, F32x16 value) {
  return detail::each([&](int i) { return x.lane[i] < cut.lane[i] ? 0.0f : value.lane[i]; });
}
// Lane i of `a` where bit i of `bits` is set, of `b` elsewhere.
inline F32x16 select(unsigned bits, F32x16 a, F32x16 b) {
  return detail::each([&](int i) { return (bits >> i & 1u) != 0 ? a.lane[i] : b.lane[i]; });
}
// 2^n for integral n in [-126, 127].
inline F32x16 power_of_two(F32x16 n) {
  return detail::each([&](int i) {
    const float valid = n.lane[i] == n.lane[i] ? n.lane[i] : 0.0f;
    return std::bit_cast<float>((static_cast<std::int32_t>(valid) + 127) << 23);
  });
}
// Lanes 2i and 2i + 1 exchanged.
inline F32x16 swap_pairs(F32x16 a) {
  return detail::each([&](int i) { return a.lane[i ^ 1]; });
}
// Lane i of r[j] and lane j of r[i] change places.
inline void transpose(F32x16 (&r)[16]) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) std::swap(r[i].lane[j], r[j].lane[i]);
  }
}
// Sixteen rows, `stride` bytes apart, of sixteen words each: to[c * step + r] is word c of row r.
inline void transpose_words(const std::byte* rows, std::ptrdiff_t stride, std::uint16_t* to,
                            std::ptrdiff_t step) {
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) std::memcpy(to + c * step + r, rows + r * stride + c * 2, 2);
  }
}
// Sum and maximum of the lanes in a fixed tree: lane i with i + 8, then 4, 2, 1.
inline float sum(F32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.lane[i] += a.lane[i + half];
  }
  return a.lane[0];
}
inline float largest(F32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i)
      a.lane[i] = a.lane[i] > a.lane[i + half] ? a.lane[i] : a.lane[i + half];
  }
  return a.lane[0];
}

inline bool all_finite(F32x16 a) {
  bool all = true;
  for (const float lane : a.lane) all = all && std::isfinite(lane);
  return all;
}

// ---- integers ----
inline I32x16 broadcast_int(std::int32_t x) {
  I32x16 out;
  for (std::int32_t& lane : out.lane) lane = x;
  return out;
}
// Nearest integers, ties to even, of lanes in [-2^31, 2^31); stored as bytes, each clamped to int8.
inline void store_rounded_bytes(std::int8_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) {
    const float r = std::nearbyint(a.lane[i]);
    p[i] = static_cast<std::int8_t>(r > 127.0f ? 127.0f : r >= -128.0f ? r : -128.0f);
  }
}
inline F32x16 load_bytes(const std::int8_t* p) {
  return detail::each([=](int i) { return static_cast<float>(p[i]); });
}
// Each of sixteen 32-bit words at p, which need not be aligned, shifted right by `shift`: the bits
// of Mask.
template <int Mask>
inline F32x16 load_fields(const std::byte* p, int shift) {
  return detail::each([=](int i) {
    std::uint32_t word;
    std::memcpy(&word, p + 4 * i, 4);
    return static_cast<float>(word >> shift & std::uint32_t{Mask});
  });
}
// The sum of 16 bytes.
inline std::int32_t sum_bytes16(const std::int8_t* p) {
  std::int32_t total = 0;
  for (int i = 0; i < 16; ++i) total += p[i];
  return total;
}

// ---- sixteen groups of four bytes; kept out of line, as leaves unroll them many times ----
inline constexpr int registers = 1;  // F32x16 values the register file holds

struct Bytes64 {
  std::uint8_t byte[64];
};
inline Bytes64 load_bytes64(const std::byte* p) {
  Bytes64 out;
  std::memcpy(out.byte, p, 64);
  return out;
}
// The four bytes at p in every group.
[[gnu::noinline]] inline Bytes64 broadcast_four(const std::int8_t* p) {
  Bytes64 out;
  for (int i = 0; i < 64; i += 4) std::memcpy(out.byte + i, p, 4);
  return out;
}
// Bits [from, from + Width) of every byte.
template <int Width>
[[gnu::noinline]] Bytes64 fields(Bytes64 a, int from) {
  for (std::uint8_t& b : a.byte) b = static_cast<std::uint8_t>(b >> from & ((1 << Width) - 1));
  return a;
}
// `low` with bits [from, from + Width) of every byte of `a` set as bits [To, To + Width), which are
// zero before.
template <int Width, int To>
[[gnu::noinline]] Bytes64 with_fields(Bytes64 low, const Bytes64& a, int from) {
  for (int i = 0; i < 64; ++i) {
    const int bits = a.byte[i] >> from & ((1 << Width) - 1);
    low.byte[i] = static_cast<std::uint8_t>(low.byte[i] | bits << To);
  }
  return low;
}
// Bytes 0 to 15, codes of E2M1 floats: twice the float plus 12.
[[gnu::noinline]] inline Bytes64 e2m1_plus_12(Bytes64 a) {
  for (std::uint8_t& b : a.byte) {
    b = static_cast<std::uint8_t>(tenon::detail::doubled_element(b) + 12);
  }
  return a;
}
// Bytes 0 to 15, codes of IQ4_NL: their levels plus 128.
[[gnu::noinline]] inline Bytes64 iq4_plus_128(Bytes64 a) {
  for (std::uint8_t& b : a.byte) b = static_cast<std::uint8_t>(tenon::detail::iq4_levels[b] + 128);
  return a;
}
// Lane i of to[j] is byte j of group i, unsigned.
[[gnu::noinline]] inline void widen_bytes64(Bytes64 a, F32x16 (&to)[4]) {
  for (int i = 0; i < 64; ++i) to[i % 4].lane[i / 4] = static_cast<float>(a.byte[i]);
}
// Lanes whose bits are those of the integers.
inline F32x16 float_of_bits(I32x16 a) {
  return detail::each([&](int i) { return std::bit_cast<float>(a.lane[i]); });
}
// Dot products of groups of four, exact: lane i of the result is acc plus the sum over group i of
// w * x, x in [-127, 127]. For narrow() w is in [0, 127]; for bytes() w is stored as w + 128, and
// unless `signs_wide` those 128 are left in the products (the caller starts acc accordingly).
// `one`, `four`, `eight`: the row tiles that a register tile of so many tokens takes, as many as
// the registers hold sums and weights of; 0: there is no such tile.
struct ByteDot {
  static constexpr bool signs_wide = true;
  static constexpr int one = 1, four = 0, eight = 0;
  static I32x16 narrow(I32x16 acc, Bytes64 w, Bytes64 x) { return dot(acc, w, x, 0); }
  static I32x16 bytes(I32x16 acc, Bytes64 w, Bytes64 x) { return dot(acc, w, x, 128); }

 private:
  [[gnu::noinline]] static I32x16 dot(I32x16 acc, const Bytes64& w, const Bytes64& x, int offset) {
    for (int i = 0; i < 64; ++i) {
      acc.lane[i / 4] += (w.byte[i] - offset) * static_cast<std::int8_t>(x.byte[i]);
    }
    return acc;
  }
};

}  // namespace tenon::inline TENON_ABI::scalar
