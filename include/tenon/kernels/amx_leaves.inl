// Linear leaves on the matrix unit of x86 (AMX), for more than two groups of tokens of a
// block format: it multiplies sixteen tokens by sixteen rows at a time in integers, the vector
// units then do the same float steps on the same dot products as everywhere. Few tokens stay with
// the vector units.
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
// to = tokens times weights, signed bytes by signed bytes.
template <int To, int Tokens, int Weights>
TENON_AMX __attribute__((always_inline)) inline void multiply_tiles() {
  asm volatile(
      "tilezero %%tmm%c0\n\t"
      "tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
      :
      : "i"(To), "i"(Tokens), "i"(Weights));
}
TENON_AMX inline void release_tiles() {
  asm volatile("tilerelease");
}

// Units [first, first + count) of a row tile as the tile registers read them: signed quants
// [units][8][64], k ascending, and floats [units][scales][scale (, minimum)][16].
template <BlockKind Kind>
inline constexpr Dim scale_floats = (Kind.minima ? 2 : 1) * tile_rows;
template <class F>
TENON_AMX inline void lay_out(const TileWeights& from, Dim first, Dim count, std::byte* bytes,
                              float* floats) {
  using avx512::store;
  constexpr BlockKind kind = TileLayout<F>::kind;
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(TileLayout<F>::offset));
  for (Dim u = first; u < first + count; ++u) {
    TENON_UNROLL
    for (int v = 0; v < 8; ++v, bytes += 64) {
      const __m512i q = avx512vnni::quants_at<F>(from.values, u, v % 4, v / 4).v;
      _mm512_store_si512(bytes, _mm512_sub_epi8(q, offset));
    }
    for (int s = 0; s < kind.scales; ++s, floats += scale_floats<kind>) {
      // A scale that is not finite becomes NaN, as the vector units' arithmetic makes of it.
      const auto d = avx512vnni::scales_at<F>(from.scales, u, s);
      store(floats, add(d, sub(d, d)));
      if constexpr (kind.minima) store(floats + 16, avx512vnni::minima_at<F>(from.scales, u, s));
    }
  }
}

// How a group of tokens meets the weights of a cut in tile registers: 0 to 3 hold dot products
// [tokens][16] of a row tile each, 4 the tokens [count][k], 5 to 7 weights [k / 4][16][4], k being
// what shares a scale. Dot products of some scales at a time wait in memory for the float steps,
// because the two units take turns anyway and a store needs time to be read again.
template <BlockKind Kind>
class MatrixTiles {
 public:
  // sums [count][R][16] += x times `units` units of R row tiles, each [bytes], [floats] of lay_out.
  template <int R>
  TENON_AMX void multiply(const std::byte* const* bytes, const float* const* floats,
                          const QuantizedGroup& x, Dim units, float* sums) {
    if (x.count != shaped_for_) shape(x.count);
    const Dim scales = units * Kind.scales;
    Dim s = 0;
    for (; s + at_once <= scales; s += at_once) some<R, at_once>(bytes, floats, x, s, sums);
    for (; s < scales; ++s) some<R, 1>(bytes, floats, x, s, sums);
  }

 private:
  static constexpr int at_once = 4;
  static constexpr int k = 32 / Kind.scales;

  TENON_AMX void shape(Dim tokens) {
    TileShapes shapes;
    for (int t = 0; t < 8; ++t) {
      shapes.row_bytes[t] = t == 4 ? k : 64;
      shapes.rows[t] = static_cast<std::uint8_t>(t <= 4 ? tokens : k / 4);
    }
    load_shapes(shapes);
    shaped_for_ = tokens;
  }

  // Stores what register C holds of the turn before, and multiplies the tokens by these weights.
  template <int C, int W>
  TENON_AMX __attribute__((always_inline)) static void turn(int i, int turns,
                                                            const std::byte* weights,
                                                            std::int32_t* before) {
    if (i < turns) load_tile<W>(weights, 64);
    if (i > 0) store_tile<C>(before, 64);
    if (i < turns) multiply_tiles<C, 4, W>();
  }

  // Scales [s, s + S) of the cut: per scale and row tile 16 dot instructions of the matrix unit's
  // time, and per output 3 (with minima 4) steps of the vector units.
  template <int R, int S>
  TENON_AMX void some(const std::byte* const* bytes, const float* const* floats,
                      const QuantizedGroup& x, Dim s, float* sums) {
    alignas(64) std::int32_t dots[S * R * 256];  // [S][R][tokens][16]
    for (int i = 0; i <= S; ++i) {
      // A tile's store waits until its register is needed again: then the product is done, and the
      // store runs beside the next ones.
      std::int32_t* before = dots + (i > 0 ? i - 1 : 0) * R * 256;
      const Dim at = (s + i) * k;
      if (i < S) load_tile<4>(x.values + at / 32 * 32 * x.count + at % 32, 32);
      turn<0, 5>(i, S, bytes[0] + at * 16, before);
      if constexpr (R > 1) turn<1, 6>(i, S, bytes[1] + at * 16, before + 256);
      if constexpr (R > 2) {
        turn<2, 7>(i, S, bytes[2] + at * 16, before + 512);
        turn<3, 5>(i, S, bytes[3] + at * 16, before + 768);
      }
    }
    __m512 d[S * R], m[Kind.minima ? S * R : 1];
    TENON_UNROLL
    for (int i = 0; i < S * R; ++i) {
      const float* own = floats[i % R] + (s + i / R) * scale_floats<Kind>;
      d[i] = _mm512_loadu_ps(own);
      if constexpr (Kind.minima) m[i] = _mm512_loadu_ps(own + 16);
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

// Any number of tokens times at most R row tiles. The weights of `cut` units are laid out once and
// stay in the first-level cache for a pass of tokens, whose sums wait in the second.
inline constexpr Dim cut = 8, pass = 256;
template <class F, int R>
TENON_AMX inline void gemm(MatrixTiles<TileLayout<F>::kind>& unit, const LinearTile* tiles,
                           int count, const LinearRows& rows) {
  if constexpr (R > 1) {
    if (count <= R / 2) return gemm<F, R / 2>(unit, tiles, count, rows);
  }
  constexpr BlockKind kind = TileLayout<F>::kind;
  constexpr Dim unit_bytes = TileLayout<F>::unit_bytes;
  constexpr Dim floats_room = cut * kind.scales * scale_floats<kind>;
  alignas(64) std::byte byte_panel[R * cut * 512];
  alignas(64) float float_panel[R * floats_room];
  alignas(64) float sums[pass * R * 16];
  const Dim units = rows.quantized.blocks;
  for (Dim t0 = 0; t0 < rows.tokens; t0 += pass) {
    const Dim tokens = (std::min)(pass, rows.tokens - t0);
    std::memset(sums, 0, static_cast<std::size_t>(tokens) * R * 64);
    for (Dim u = 0; u < units; u += cut) {
      const Dim depth = (std::min)(cut, units - u);
      const std::byte* bytes[R];
      const float* floats[R];
      for (int r = 0; r < R; ++r) {  // tiles missing from the group repeat the first
        const Dim at = r < count ? r : 0;
        bytes[r] = byte_panel + at * cut * 512;
        floats[r] = float_panel + at * floats_room;
        if (r < count) {
          lay_out<F>(tiles[r].weights, u, depth, byte_panel + r * cut * 512,
                     float_panel + r * floats_room);
        }
      }
      for (Dim t = 0; t < tokens; t += QuantizedGroup::most) {
        const Dim together = (std::min)(QuantizedGroup::most, tokens - t);
        if (u + cut < units) {
          avx512::prefetch_part(tiles, count, (u + cut) * unit_bytes, cut * unit_bytes,
                                t / QuantizedGroup::most, ceil_div(tokens, QuantizedGroup::most));
        }
        unit.template multiply<R>(bytes, floats,
                                  rows.quantized.group(t0 + t, together).from_block(u), depth,
                                  sums + t * R * 16);
      }
    }
    for (Dim t = 0; t < tokens; ++t) {
      for (int r = 0; r < count; ++r) avx512::finish(tiles[r], t0 + t, sums + (t * R + r) * 16);
    }
  }
}

template <class F>
TENON_AMX inline void linear_int8(const LinearTile* tiles, int count, const LinearRows& rows) {
  // Laying the weights out is not worth it for few tokens.
  if (rows.tokens <= 2 * QuantizedGroup::most) {
    return avx512vnni::linear_int8<F>(tiles, count, rows);
  }
  MatrixTiles<TileLayout<F>::kind> unit;
  for (; count > 0; tiles += 4, count -= 4) gemm<F, 4>(unit, tiles, (std::min)(count, 4), rows);
  release_tiles();
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
