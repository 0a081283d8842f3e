#pragma once
// Linear leaves on the matrix unit of x86 (AMX), for several tokens of a block format: it
// multiplies sixteen tokens by sixteen rows at a time in integers, the vector units then do the
// same float steps on the same dot products as everywhere. Few tokens stay with the vector units.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "linear.hpp"

#define TENON_AMX \
  TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni,amx-tile,amx-int8")

namespace tenon::inline TENON_ABI::amx {

// The shapes of the tile registers, as the instruction LDTILECFG reads them.
struct TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// Lays out a cut as avx512vnni::spread does, but with the quants as signed integers.
template <class F>
TENON_AMX inline const std::byte* spread(const TileWeights& from, Dim first, Dim count,
                                         std::byte* bytes, float* floats) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(TileLayout<F>::offset));
  const std::byte* unsigned_bytes = avx512vnni::spread<F>(from, first, count, bytes, floats);
  for (Dim i = 0; i < count * 512; i += 64) {
    const __m512i q = _mm512_loadu_si512(unsigned_bytes + i);
    _mm512_store_si512(bytes + i, _mm512_sub_epi8(q, offset));
  }
  return bytes;
}

// How a group of tokens meets the weights of a cut in tile registers: 0 to 3 hold dot products
// [tokens][16] of a row tile each, 4 the tokens [count][k], 5 to 7 weights [k / 4][16][4], k being
// what shares a scale. Dot products of some scales at a time wait in memory for the float steps,
// because the two units take turns anyway and a store needs time to be read again.
template <BlockKind Kind>
class MatrixTiles {
 public:
  static constexpr int tiles = 4;
  static constexpr Dim units = 8, pass = 256;

  template <int R>
  TENON_AMX void multiply(const std::byte* const* bytes, const float* const* floats, std::int32_t,
                          const QuantizedGroup& x, Dim depth, float* sums) {
    if (x.count != shaped_for_) shape(x.count);
    const Dim scales = depth * Kind.scales;
    Dim s = 0;
    for (; s + at_once <= scales; s += at_once) some<R, at_once>(bytes, floats, x, s, sums);
    for (; s < scales; ++s) some<R, 1>(bytes, floats, x, s, sums);
  }

 private:
  static constexpr int at_once = 4;
  static constexpr int k = 32 / Kind.scales;
  static constexpr Dim stride = Kind.minima ? 48 : 32;  // floats of a scale in a panel

  TENON_AMX void shape(Dim tokens) {
    TileShapes shapes;
    for (int t = 0; t < 8; ++t) {
      shapes.row_bytes[t] = t == 4 ? k : 64;
      shapes.rows[t] = static_cast<std::uint8_t>(t <= 4 ? tokens : k / 4);
    }
    _tile_loadconfig(&shapes);
    shaped_for_ = tokens;
  }

  // Scales [s, s + S) of the cut: per scale and row tile 16 dot instructions of the matrix unit's
  // time, and per output 3 (with minima 4) steps of the vector units.
  template <int R, int S>
  TENON_AMX void some(const std::byte* const* bytes, const float* const* floats,
                      const QuantizedGroup& x, Dim s, float* sums) {
    alignas(64) std::int32_t dots[S * R * 256];  // [S][R][tokens][16]
    for (int i = 0; i < S; ++i) {
      std::int32_t* to = dots + i * R * 256;
      const Dim at = (s + i) * k;
      _tile_loadd(4, x.values + at / 32 * 32 * x.count + at % 32, 32);
      _tile_loadd(5, bytes[0] + at * 16, 64);
      _tile_zero(0);
      _tile_dpbssd(0, 4, 5);
      if constexpr (R > 1) {
        _tile_loadd(6, bytes[1] + at * 16, 64);
        _tile_zero(1);
        _tile_dpbssd(1, 4, 6);
      }
      if constexpr (R > 2) {
        _tile_loadd(7, bytes[2] + at * 16, 64);
        _tile_zero(2);
        _tile_dpbssd(2, 4, 7);
        _tile_loadd(5, bytes[3] + at * 16, 64);
        _tile_zero(3);
        _tile_dpbssd(3, 4, 5);
      }
      _tile_stored(0, to, 64);
      if constexpr (R > 1) _tile_stored(1, to + 256, 64);
      if constexpr (R > 2) {
        _tile_stored(2, to + 512, 64);
        _tile_stored(3, to + 768, 64);
      }
    }
    __m512 d[S * R], m[Kind.minima ? S * R : 1];
    TENON_UNROLL
    for (int i = 0; i < S * R; ++i) {
      const float* own = floats[i % R] + (s + i / R) * stride;
      d[i] = _mm512_loadu_ps(own);
      if constexpr (Kind.minima) m[i] = _mm512_loadu_ps(own + 32);
    }
    for (Dim t = 0; t < x.count; ++t) {
      float* y = sums + t * R * 16;
      __m512 acc[R];
      TENON_UNROLL
      for (int r = 0; r < R; ++r) acc[r] = _mm512_loadu_ps(y + 16 * r);
      TENON_UNROLL
      for (int i = 0; i < S; ++i) {
        const Dim at = (s + i) / Kind.scales * x.count + t;
        const float dx = x.scales[at];
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          const __m512 dot =
              _mm512_cvtepi32_ps(_mm512_load_si512(dots + ((i * R + r) * 16 + t) * 16));
          acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(dot, d[i * R + r]), _mm512_set1_ps(dx), acc[r]);
        }
        if constexpr (Kind.minima) {
          const auto half = static_cast<int>((s + i) % Kind.scales);
          const float weight = dx * static_cast<float>(avx512vnni::sum_of<Kind>(x, at, half));
          TENON_UNROLL
          for (int r = 0; r < R; ++r) {
            acc[r] = _mm512_fmadd_ps(m[i * R + r], _mm512_set1_ps(weight), acc[r]);
          }
        }
      }
      TENON_UNROLL
      for (int r = 0; r < R; ++r) _mm512_storeu_ps(y + 16 * r, acc[r]);
    }
  }

  Dim shaped_for_ = 0;
};

template <class F>
TENON_AMX inline void linear_int8(const LinearTile* tiles, int count, const LinearRows& rows) {
  // Laying the weights out is not worth it for a single group.
  if (rows.tokens <= QuantizedGroup::most) return avx512vnni::linear_int8<F>(tiles, count, rows);
  constexpr BlockKind kind = TileLayout<F>::kind;
  static constexpr avx512vnni::SpreadFormat format{spread<F>, 0, TileLayout<F>::unit_bytes};
  avx512vnni::integer_gemms<kind>(MatrixTiles<kind>{}, tiles, count, rows, format);
  _tile_release();
}

template <class F>
constexpr LinearLeaf leaf_of() {
  if constexpr (IntegerTiled<F>) {
    return {avx512vnni::linear_leaf_of<F>.f32, linear_int8<F>};
  } else {
    return avx512vnni::linear_leaf_of<F>;
  }
}
template <class F>
inline constexpr LinearLeaf linear_leaf_of = leaf_of<F>();

}  // namespace tenon::inline TENON_ABI::amx
#undef TENON_AMX
#endif
