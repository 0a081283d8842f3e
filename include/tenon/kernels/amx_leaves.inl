// Linear leaves on the matrix unit of x86 (AMX), for several tokens of a block format: it
// multiplies sixteen tokens by sixteen rows at a time in integers, the vector units then do the
// same float steps on the same dot products as everywhere. Few tokens stay with the vector units.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define TENON_AMX \
  TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni,amx-tile,amx-int8")

namespace tenon::inline TENON_ABI::amx {

// The shapes of the tile registers, as the instruction LDTILECFG reads them.
struct TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// The instructions on tile registers. Not the compilers' intrinsics: those of g++ want literals for
// the registers, and of LDTILECFG's 64 bytes g++ 12 thinks that the last 56 are not read.
TENON_AMX inline void load_shapes(const TileShapes& shapes) {
  asm volatile("ldtilecfg %0" : : "m"(shapes));
}
template <int Tile>
TENON_AMX __attribute__((always_inline)) inline void load_tile(const void* from, Dim stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(Tile), "r"(from), "r"(stride) : "memory");
}
template <int Tile>
TENON_AMX __attribute__((always_inline)) inline void store_tile(void* to, Dim stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(Tile), "r"(to), "r"(stride) : "memory");
}
// to += tokens times weights, signed bytes by signed bytes, or by unsigned ones.
template <int To, int Tokens, int Weights, bool Unsigned>
TENON_AMX __attribute__((always_inline)) inline void multiply_tiles() {
  if constexpr (Unsigned) {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(To), "i"(Tokens), "i"(Weights));
  } else {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(To), "i"(Tokens), "i"(Weights));
  }
}
TENON_AMX inline void release_tiles() {
  asm volatile("tilerelease");
}

// Where the integer sums of a tile start (see streamed_tile in int8_leaves.inl). Loaded, and not
// TILEZERO: where this was measured, a product after that one waited for the product before it.
struct TileStart {
  alignas(64) std::int32_t sums[16][16];
};
inline constexpr TileStart tile_start = [] {
  TileStart start{};
  for (auto& row : start.sums) {
    for (std::int32_t& sum : row) sum = avx512vnni::integral_bits;
  }
  return start;
}();

// Quants that lie in a tile as the tile registers read them, unsigned.
template <class F>
inline constexpr bool bytes_as_stored =
    TileLayout<F>::planes.low == 8 && TileLayout<F>::code == QuantCode::integer;

// Units [first, first + count) of a row tile as the tile registers read them: signed quants
// [units][8][64], k ascending, and floats [units][scales][scale, -integral scale (, minimum)][16].
template <BlockKind Kind>
inline constexpr Dim scale_floats = (Kind.minima ? 3 : 2) * tile_rows;
template <class F>
TENON_AMX inline void lay_out_quants(const TileWeights& from, Dim first, Dim count,
                                     std::byte* bytes) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(TileLayout<F>::offset));
  for (Dim u = first; u < first + count; ++u) {
    TENON_UNROLL
    for (int v = 0; v < 8; ++v, bytes += 64) {
      const __m512i q = avx512vnni::quants_at<F>(from.values, u, v % 4, v / 4).v;
      _mm512_store_si512(bytes, _mm512_sub_epi8(q, offset));
    }
  }
}
template <class F>
TENON_AMX inline void lay_out_scales(const TileWeights& from, Dim first, Dim count, float* floats) {
  using avx512::store;
  constexpr BlockKind kind = TileLayout<F>::kind;
  const auto minus_integral = avx512::broadcast(-avx512vnni::integral);
  for (Dim u = first; u < first + count; ++u) {
    for (int s = 0; s < kind.scales; ++s, floats += scale_floats<kind>) {
      const auto d = avx512vnni::scales_at<F>(from.scales, u, s);
      store(floats, d);
      store(floats + 16, mul(d, minus_integral));
      if constexpr (kind.minima) store(floats + 32, avx512vnni::minima_at<F>(from.scales, u, s));
    }
  }
}

// A later cut of R row tiles' values, asked for piece by piece while this one computes: all at once
// would hold up the loads beside them. `Early`: evenly, beside products too, and not into the first
// cache.
template <int R, bool Early>
struct Upcoming {
  const std::byte* values[R];
  Dim at, until;  // bytes of each that are asked for next, and up to where
  Dim pace;       // how much further `until` moves with every part, if early
  void fetch() const {
    for (int r = 0; r < R; ++r) avx512::fetch<Early ? 2 : 3>(values[r], at);
  }
  void beside_product() {
    if constexpr (Early) beside_float_steps();
  }
  void beside_float_steps() {
    if constexpr (Early) {
      for (until += pace; at < until; at += 64) fetch();
    } else if (at < until) {
      fetch();
      at += 64;
    }
  }
};

// Dot products of so many scales and row tiles wait for the float steps together.
inline constexpr int scales_at_once = 8;

// How a group of tokens meets the weights of a cut in tile registers: 0 and 1 hold dot products
// [tokens][16] of a row tile each, 2 the tokens [count][k], 3 weights [k / 4][16][4], k being what
// shares a scale. Four of the eight registers: at times, when (we think) another thread of the core
// uses its own, products on all eight were seen to wait for one another. Dot products of some
// scales at a time wait in memory for the float steps, because the matrix and the vector units take
// turns anyway and a store needs time to be read again. `Huge` scales make -integral scale
// infinite. Weights are signed bytes, or (Offset > 0) unsigned ones that are too large by Offset.
template <BlockKind Kind, bool Huge, int Offset>
class MatrixTiles {
  static_assert(Offset == 0 || Kind.scales == 1);

 public:
  // sums [count][R][16] += x times `units` units of R row tiles, each of bytes [units][8][64] and
  // of the floats of lay_out_scales.
  template <int R, class Next>
  TENON_AMX void multiply(const std::byte* const* bytes, const float* const* floats,
                          const QuantizedGroup& x, Dim units, float* sums, Next& next) {
    if (x.count != shaped_for_) shape(x.count);
    const Dim scales = units * Kind.scales;
    constexpr int at_once = scales_at_once / R;
    Dim s = 0;
    for (; s + at_once <= scales; s += at_once) some<R, at_once>(bytes, floats, x, s, sums, next);
    for (; s < scales; ++s) some<R, 1>(bytes, floats, x, s, sums, next);
  }

 private:
  static constexpr int k = 32 / Kind.scales;

  TENON_AMX void shape(Dim tokens) {
    TileShapes shapes;
    for (int t = 0; t < 4; ++t) {
      shapes.row_bytes[t] = t == 2 ? k : 64;
      shapes.rows[t] = static_cast<std::uint8_t>(t <= 2 ? tokens : k / 4);
    }
    load_shapes(shapes);
    shaped_for_ = tokens;
  }

  // Multiplies the tokens by the weights of one scale of a row tile, in register C. What that held
  // of two turns before is stored only now: then it is done, and the store runs beside this one.
  template <int C, class Next>
  TENON_AMX __attribute__((always_inline)) static void turn(const std::byte* weights, int number,
                                                            float* dots, Next& next) {
    load_tile<3>(weights, 64);
    next.beside_product();
    if (number >= 2) store_tile<C>(dots + (number - 2) * 256, 64);
    load_tile<C>(tile_start.sums, 64);
    multiply_tiles<C, 2, 3, (Offset > 0)>();
  }

  // Scales [s, s + S) of the cut: per scale and row tile 16 dot instructions of the matrix unit's
  // time, and per output 2 (with minima 3) steps of the vector units.
  template <int R, int S, class Next>
  TENON_AMX void some(const std::byte* const* bytes, const float* const* floats,
                      const QuantizedGroup& x, Dim s, float* sums, Next& next) {
    constexpr Dim stride = scale_floats<Kind>;
    const __m512 integral = _mm512_set1_ps(avx512vnni::integral);
    alignas(64) float dots[S * R * 256];  // [S][R][tokens][16], each plus `integral`
    TENON_UNROLL
    for (int i = 0; i < S * R; ++i) {
      const Dim at = (s + i / R) * k;
      if (i % R == 0) load_tile<2>(x.values + at / 32 * 32 * x.count + at % 32, 32);
      const std::byte* weights = bytes[i % R] + at * 16;
      if (i % 2 == 0) turn<0>(weights, i, dots, next);
      if (i % 2 == 1) turn<1>(weights, i, dots, next);
    }
    constexpr int last = S * R - 1;
    if constexpr (last > 0) store_tile<(last - 1) % 2>(dots + (last - 1) * 256, 64);
    store_tile<last % 2>(dots + last * 256, 64);
    const float* own[R];
    TENON_UNROLL
    for (int r = 0; r < R; ++r) own[r] = floats[r] + s * stride;
    __m512 d[S * R];
    TENON_UNROLL
    for (int i = 0; i < S * R; ++i) d[i] = _mm512_load_ps(own[i % R] + i / R * stride);
    for (Dim t = 0; t < x.count; ++t) {
      next.beside_float_steps();
      float* y = sums + t * R * 16;
      __m512 acc[R];
      TENON_UNROLL
      for (int r = 0; r < R; ++r) acc[r] = _mm512_loadu_ps(y + 16 * r);
      TENON_UNROLL
      for (int i = 0; i < S; ++i) {
        const Dim at = (s + i) / Kind.scales * x.count + t;
        const float dx = x.scales[at];
        const __m512i excess = _mm512_set1_epi32(Offset * x.sums[at]);
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          __m512 dot = _mm512_load_ps(dots + ((i * R + r) * 16 + t) * 16);
          if constexpr (Offset > 0) {
            dot = _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_castps_si512(dot), excess));
          }
          const __m512 scale = d[i * R + r];
          __m512 product;
          if constexpr (Huge) {
            product = _mm512_mul_ps(_mm512_sub_ps(dot, integral), scale);
          } else {
            product = _mm512_fmadd_ps(dot, scale, _mm512_load_ps(own[r] + i * stride + 16));
          }
          acc[r] = _mm512_fmadd_ps(product, _mm512_set1_ps(dx), acc[r]);
        }
        if constexpr (Kind.minima) {
          const auto half = static_cast<int>((s + i) % Kind.scales);
          const float weight = dx * static_cast<float>(avx512vnni::sum_of<Kind>(x, at, half));
          TENON_UNROLL
          for (int r = 0; r < R; ++r) {
            const __m512 minimum = _mm512_load_ps(own[r] + i * stride + 32);
            acc[r] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(weight), acc[r]);
          }
        }
      }
      TENON_UNROLL
      for (int r = 0; r < R; ++r) _mm512_storeu_ps(y + 16 * r, acc[r]);
    }
  }

  Dim shaped_for_ = 0;
};

// The weights of `cut` units stay in the first-level cache for a pass of tokens, whose sums wait in
// the second. That cache is to hold everything: 8 KiB of quants and as much of dot products are
// much if two threads share it.
inline constexpr Dim cut = 4, pass = 256;
// Up to here the vector units do it alone.
inline constexpr Dim vector_tokens = 8;

template <class F, bool Few>
using TilesOf = MatrixTiles<TileLayout<F>::kind, TileLayout<F>::code == QuantCode::e2m1,
                            Few && bytes_as_stored<F> ? TileLayout<F>::offset : 0>;

// Any number of tokens times at most R row tiles. `Few`: at most few_tokens, whose weights are
// asked for early, and used as they are stored where that can be.
template <class F, int R, bool Few>
TENON_AMX inline void gemm(TilesOf<F, Few>& unit, const LinearTile* tiles, int count,
                           const LinearRows& rows) {
  if constexpr (R > 1) {
    if (count <= R / 2) return gemm<F, R / 2, Few>(unit, tiles, count, rows);
  }
  using Layout = TileLayout<F>;
  constexpr BlockKind kind = Layout::kind;
  constexpr Dim unit_bytes = Layout::unit_bytes;
  constexpr Dim floats_room = cut * kind.scales * scale_floats<kind>;
  constexpr bool as_stored = Few && bytes_as_stored<F>;
  constexpr Dim ahead = cut * (Few ? 4 : 1);
  alignas(64) std::byte byte_panel[as_stored ? 1 : R * cut * 512];
  alignas(64) float float_panel[R * floats_room];
  alignas(64) float sums[(Few ? few_tokens : pass) * R * 16];
  const Dim units = rows.quantized.blocks;
  for (Dim t0 = 0; t0 < rows.tokens; t0 += pass) {
    const Dim tokens = (std::min)(pass, rows.tokens - t0);
    std::memset(sums, 0, static_cast<std::size_t>(tokens) * R * 64);
    for (Dim u = 0; u < units; u += cut) {
      const Dim depth = (std::min)(cut, units - u);
      const std::byte* bytes[R];
      const float* floats[R];
      Upcoming<R, Few> next;
      for (int r = 0; r < R; ++r) {  // tiles missing from the group repeat the first
        const int at = r < count ? r : 0;
        const TileWeights& weights = tiles[at].weights;
        bytes[r] = as_stored ? weights.values + u * unit_bytes : byte_panel + at * cut * 512;
        floats[r] = float_panel + at * floats_room;
        next.values[r] = weights.values;
        if (r >= count) continue;
        if constexpr (!as_stored) {
          lay_out_quants<F>(weights, u, depth, byte_panel + r * cut * 512);
        }
        lay_out_scales<F>(weights, u, depth, float_panel + r * floats_room);
        if constexpr (Few) {
          constexpr Dim each = avx512vnni::scale_bytes_a_unit<F>;
          const Dim end = (u + ahead + cut) * each;
          for (Dim i = (u + ahead) * each / 64 * 64; i < end; i += 64) {
            avx512::fetch<2>(weights.scales, i);
          }
        }
      }
      const Dim turns = depth * kind.scales * R;  // of a group of tokens
      const Dim parts =
          turns * ceil_div(tokens, QuantizedGroup::most) + tokens * ceil_div(turns, scales_at_once);
      next.at = (u + ahead) * unit_bytes;
      next.until = Few ? next.at : next.at + cut * unit_bytes;
      next.pace = ceil_div(cut * unit_bytes, parts);
      for (Dim t = 0; t < tokens; t += QuantizedGroup::most) {
        const Dim together = (std::min)(QuantizedGroup::most, tokens - t);
        unit.template multiply<R>(bytes, floats,
                                  rows.quantized.group(t0 + t, together).from_block(u), depth,
                                  sums + t * R * 16, next);
      }
    }
    for (Dim t = 0; t < tokens; ++t) {
      for (int r = 0; r < count; ++r) avx512::finish(tiles[r], t0 + t, sums + (t * R + r) * 16);
    }
  }
}
template <class F, int R, bool Few>
TENON_AMX inline void gemm_groups(const LinearTile* tiles, int count, const LinearRows& rows) {
  TilesOf<F, Few> unit;
  for (; count > 0; tiles += R, count -= R) {
    gemm<F, R, Few>(unit, tiles, (std::min)(count, R), rows);
  }
  release_tiles();
}

template <class F>
TENON_AMX inline void linear_int8(const LinearTile* tiles, int count, const LinearRows& rows) {
  if (rows.tokens <= vector_tokens) return avx512vnni::linear_int8<F>(tiles, count, rows);
  if (rows.tokens <= few_tokens) return gemm_groups<F, 2, true>(tiles, count, rows);
  gemm_groups<F, 4, false>(tiles, count, rows);
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
