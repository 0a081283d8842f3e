// Linear leaves on int8 activations, for block formats. Per 32 k (16 where halves have scales of
// their own), ascending from acc = 0:
//   dot = sum over them of w_q x_q, exact;        acc = fma(float(dot) * d_w, d_x, acc)
//   formats with minima then add theirs:          acc = fma(m_w, d_x * float(sum of x_q), acc)
// Compiled once per instruction set; ByteDot is that of the surrounding namespace.

// The float 1.5 * 2^23: its bits plus an integer below 2^22 in magnitude are it plus that integer.
inline constexpr float integral = 12582912.0f;
inline constexpr std::int32_t integral_bits = 0x4b400000;

// What the integer dot product of these quants must still lose for each unit of the activations'
// sum, given that ByteDot may take it off itself.
template <class F>
inline constexpr std::int32_t kept_offset =
    TileLayout<F>::kind.wide&& ByteDot::signs_wide ? 0 : TileLayout<F>::offset;

// A class, because the lookup of a function would also find that of the lanes' namespace.
template <BlockKind Kind>
struct Products {
  TENON_LEAF static inline __attribute__((always_inline)) I32x16 add(I32x16 acc, Bytes64 w,
                                                                     Bytes64 x) {
    if constexpr (Kind.wide) {
      return ByteDot::bytes(acc, w, x);
    } else {
      return ByteDot::narrow(acc, w, x);
    }
  }
};
// The sum of the activations that share scale `s` of a unit.
template <BlockKind Kind>
TENON_LEAF inline __attribute__((always_inline)) std::int32_t sum_of(const QuantizedGroup& x,
                                                                     Dim at, int s) {
  if constexpr (Kind.scales == 1) return x.sums[at];
  return s == 0 ? x.heads[at] : x.sums[at] - x.heads[at];
}

// ---- one token: the weights straight from memory ----

// sums [R][16] = x times R row tiles. Per unit: 8 vectors of 64 weights per row tile, 8 broadcasts,
// 8 R dot instructions, 2 (with minima 3) fma per scale and sum. Integer sums start at
// integral_bits, and fma(integral + dot, d_w, -integral d_w) rounds dot * d_w once. (MXFP4 scales
// of 2^104 and more overflow there: the row becomes NaN.)
template <class F, int R>
TENON_LEAF inline void gemv_tile(const LinearTile* tiles, int count, const QuantizedGroup& x,
                                 Dim units, float* sums) {
  constexpr BlockKind kind = TileLayout<F>::kind;
  constexpr int vectors = 8 / kind.scales;
  const std::byte* values[R];
  const std::byte* scales[R];
  for (int r = 0; r < R; ++r) {  // tiles missing from the group repeat the first
    values[r] = tiles[r < count ? r : 0].weights.values;
    scales[r] = tiles[r < count ? r : 0].weights.scales;
  }
  F32x16 acc[R];
  TENON_UNROLL
  for (int r = 0; r < R; ++r) acc[r] = zero();
  for (Dim u = 0; u < units; ++u) {
    TENON_UNROLL
    for (int s = 0; s < kind.scales; ++s) {
      const std::int32_t sum = sum_of<kind>(x, u, s);
      I32x16 dot[R];
      TENON_UNROLL
      for (int r = 0; r < R; ++r) dot[r] = broadcast_int(integral_bits - kept_offset<F> * sum);
      TENON_UNROLL
      for (int v = 0; v < vectors; ++v) {
        const int j = v % 4, half = kind.scales == 2 ? s : v / 4;
        const Bytes64 four = broadcast_four(x.values + u * 32 + 16 * half + 4 * j);
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          constexpr Dim bytes = TileLayout<F>::unit_bytes;
          const Dim ahead = 64 * (4 * half + j);
          if (ahead < bytes) __builtin_prefetch(values[r] + u * bytes + ahead + stream_ahead);
          dot[r] = Products<kind>::add(dot[r], quants_at<F>(values[r], u, j, half), four);
        }
      }
      const float dx = x.scales[u];
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const F32x16 d = scales_at<F>(scales[r], u, s);
        const F32x16 product = fma(float_of_bits(dot[r]), d, mul(d, broadcast(-integral)));
        acc[r] = fma(product, broadcast(dx), acc[r]);
        if constexpr (kind.minima) {
          const float weight = dx * static_cast<float>(sum);
          acc[r] = fma(minima_at<F>(scales[r], u, s), broadcast(weight), acc[r]);
        }
      }
    }
  }
  TENON_UNROLL
  for (int r = 0; r < R; ++r) store(sums + 16 * r, acc[r]);
}
template <class F, int R>
TENON_LEAF inline void integer_gemv(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (R > 1) {
    if (count <= R / 2) return integer_gemv<F, R / 2>(tiles, count, rows);
  }
  alignas(64) float sums[R * 16];
  gemv_tile<F, R>(tiles, count, rows.quantized.group(0, 1), rows.quantized.blocks, sums);
  for (int r = 0; r < count; ++r) finish(tiles[r], 0, sums + 16 * r);
}

// ---- several tokens: lay the weights of a cut out once, then multiply all tokens by them ----

// The units of a cut of one row tile as the register tiles read them: a byte for every quant
// [units][8][64], k ascending, and floats [units][scales][d, -integral d (, minimum)][16].
template <BlockKind Kind>
inline constexpr Dim unit_floats = Kind.scales*(Kind.minima ? 3 : 2) * tile_rows;

// Lays out units [first, first + count); returns where the bytes are: in the tile itself when that
// holds them as they are needed.
using Spread = const std::byte* (*)(const TileWeights& from, Dim first, Dim count, std::byte* bytes,
                                    float* floats);
template <class F>
TENON_LEAF inline const std::byte* spread(const TileWeights& from, Dim first, Dim count,
                                          std::byte* bytes, float* floats) {
  using Layout = TileLayout<F>;
  constexpr bool in_place = Layout::kind.wide && Layout::unit_bytes == 512;
  for (Dim u = first; u < first + count; ++u) {
    if constexpr (!in_place) {
      TENON_UNROLL
      for (int v = 0; v < 8; ++v) {
        store_bytes64(bytes + (u - first) * 512 + 64 * v,
                      quants_at<F>(from.values, u, v % 4, v / 4));
      }
    }
    for (int s = 0; s < Layout::kind.scales; ++s) {
      const F32x16 d = scales_at<F>(from.scales, u, s);
      store(floats, d);
      store(floats + 16, mul(d, broadcast(-integral)));
      floats += 32;
      if constexpr (Layout::kind.minima) {
        store(floats, minima_at<F>(from.scales, u, s));
        floats += 16;
      }
    }
  }
  return in_place ? from.values + first * Dim{Layout::unit_bytes} : bytes;
}

// What several tokens need to know of a format besides its kind.
struct SpreadFormat {
  Spread spread;
  std::int32_t kept;  // kept_offset
  Dim unit_bytes;     // of a tile's values
};

// sums [N][R][16] += x [N tokens] times R row tiles, `units` units of each. Per unit: 8 R weight
// loads, 8 N broadcasts, 8 R N dot instructions, and per scale and sum 2 (3) fma, a load and a
// store: sums wait in memory, so that the registers hold more integer chains.
template <BlockKind Kind, int R, int N>
TENON_LEAF inline void integer_tile(const std::byte* const* bytes, const float* const* floats,
                                    std::int32_t kept, const QuantizedGroup& x, Dim units,
                                    float* sums) {
  constexpr int vectors = 8 / Kind.scales;
  for (Dim u = 0; u < units; ++u) {
    const Dim at = u * x.count;
    TENON_UNROLL
    for (int s = 0; s < Kind.scales; ++s) {
      I32x16 dot[N * R];
      TENON_UNROLL
      for (int n = 0; n < N; ++n) {
        const I32x16 start = broadcast_int(integral_bits - kept * sum_of<Kind>(x, at + n, s));
        TENON_UNROLL
        for (int r = 0; r < R; ++r) dot[n * R + r] = start;
      }
      TENON_UNROLL
      for (int v = 0; v < vectors; ++v) {
        const Dim k = 4 * (vectors * s + v);
        Bytes64 w[R];
        TENON_UNROLL
        for (int r = 0; r < R; ++r) w[r] = load_bytes64(bytes[r] + u * 512 + 16 * k);
        TENON_UNROLL
        for (int n = 0; n < N; ++n) {
          const Bytes64 four = broadcast_four(x.values + (at + n) * 32 + k);
          TENON_UNROLL
          for (int r = 0; r < R; ++r) {
            dot[n * R + r] = Products<Kind>::add(dot[n * R + r], w[r], four);
          }
        }
      }
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const float* own =
            floats[r] + u * unit_floats<Kind> + s * (unit_floats<Kind> / Kind.scales);
        const F32x16 d = load(own), back = load(own + 16);
        TENON_UNROLL
        for (int n = 0; n < N; ++n) {
          const float dx = x.scales[at + n];
          float* to = sums + (n * R + r) * 16;
          F32x16 acc = fma(fma(float_of_bits(dot[n * R + r]), d, back), broadcast(dx), load(to));
          if constexpr (Kind.minima) {
            const float weight = dx * static_cast<float>(sum_of<Kind>(x, at + n, s));
            acc = fma(load(own + 32), broadcast(weight), acc);
          }
          store(to, acc);
        }
      }
    }
  }
}
// The same for `tokens` of 1 to N.
template <BlockKind Kind, int R, int N>
TENON_LEAF inline void integer_rest(int tokens, const std::byte* const* bytes,
                                    const float* const* floats, std::int32_t kept,
                                    const QuantizedGroup& x, Dim units, float* sums) {
  if constexpr (N > 1) {
    if (tokens < N) {
      return integer_rest<Kind, R, N - 1>(tokens, bytes, floats, kept, x, units, sums);
    }
  }
  integer_tile<Kind, R, N>(bytes, floats, kept, x, units, sums);
}

// How a group of tokens meets the weights of a cut: here in register tiles, sums [count][R][16]. A
// cut is `units` of 32 k, so that the weights stay in the first-level cache for a pass of tokens.
template <BlockKind Kind>
struct RegisterTiles {
  static constexpr int tiles = ByteDot::tiles;
  static constexpr Dim units = 16, pass = 128;
  template <int R>
  TENON_LEAF void multiply(const std::byte* const* bytes, const float* const* floats,
                           std::int32_t kept, const QuantizedGroup& x, Dim depth, float* sums) {
    for (Dim n = 0; n < x.count; n += ByteDot::tokens) {
      integer_rest<Kind, R, ByteDot::tokens>(static_cast<int>(x.count - n), bytes, floats, kept,
                                             x.from_token(n), depth, sums + n * R * 16);
    }
  }
};

// Any number of tokens times at most R row tiles.
template <BlockKind Kind, int R, class Unit>
TENON_LEAF inline void integer_gemm(Unit& unit, const LinearTile* tiles, int count,
                                    const LinearRows& rows, const SpreadFormat& format) {
  if constexpr (R > 1) {
    if (count <= R / 2) return integer_gemm<Kind, R / 2>(unit, tiles, count, rows, format);
  }
  constexpr Dim bytes_room = Unit::units * 512, floats_room = Unit::units * unit_floats<Kind>;
  alignas(64) std::byte byte_panel[R * bytes_room];
  alignas(64) float float_panel[R * floats_room];
  alignas(64) float sums[Unit::pass * R * 16];
  const Dim units = rows.quantized.blocks;
  for (Dim t0 = 0; t0 < rows.tokens; t0 += Unit::pass) {
    const Dim tokens = (std::min)(Unit::pass, rows.tokens - t0);
    std::memset(sums, 0, static_cast<std::size_t>(tokens) * R * 64);
    for (Dim u = 0; u < units; u += Unit::units) {
      const Dim depth = (std::min)(Unit::units, units - u);
      const std::byte* bytes[R];
      const float* floats[R];
      for (int r = 0; r < R; ++r) {  // tiles missing from the group repeat the first
        bytes[r] = bytes[0];
        floats[r] = float_panel + (r < count ? r * floats_room : 0);
        if (r >= count) continue;
        bytes[r] = format.spread(tiles[r].weights, u, depth, byte_panel + r * bytes_room,
                                 float_panel + r * floats_room);
      }
      const Dim next = (u + Unit::units) * format.unit_bytes;
      const Dim ahead = u + 2 * Unit::units <= units ? Unit::units * format.unit_bytes : 0;
      for (Dim t = 0; t < tokens; t += QuantizedGroup::most) {
        const Dim together = (std::min)(QuantizedGroup::most, tokens - t);
        prefetch_part(tiles, count, next, ahead, t / QuantizedGroup::most,
                      ceil_div(tokens, QuantizedGroup::most));
        unit.template multiply<R>(bytes, floats, format.kept,
                                  rows.quantized.group(t0 + t, together).from_block(u), depth,
                                  sums + t * R * 16);
      }
    }
    for (Dim t = 0; t < tokens; ++t) {
      for (int r = 0; r < count; ++r) finish(tiles[r], t0 + t, sums + (t * R + r) * 16);
    }
  }
}
// All tiles of a call.
template <BlockKind Kind, class Unit>
TENON_LEAF inline void integer_gemms(Unit unit, const LinearTile* tiles, int count,
                                     const LinearRows& rows, const SpreadFormat& format) {
  constexpr int most = Unit::tiles;
  for (; count > 0; tiles += most, count -= most) {
    integer_gemm<Kind, most>(unit, tiles, (std::min)(count, most), rows, format);
  }
}

template <class F>
TENON_LEAF inline void linear_int8(const LinearTile* tiles, int count, const LinearRows& rows) {
  if (rows.tokens == 1) {
    constexpr int most = ByteDot::streams;
    for (; count > 0; tiles += most, count -= most) {
      integer_gemv<F, most>(tiles, (std::min)(count, most), rows);
    }
    return;
  }
  static constexpr SpreadFormat format{spread<F>, kept_offset<F>, TileLayout<F>::unit_bytes};
  constexpr BlockKind kind = TileLayout<F>::kind;
  integer_gemms<kind>(RegisterTiles<kind>{}, tiles, count, rows, format);
}

template <class F>
constexpr LinearLeaf::Call linear_int8_of() {
  if constexpr (IntegerTiled<F>) {
    return linear_int8<F>;
  } else {
    return nullptr;
  }
}
template <class F>
inline constexpr LinearLeaf linear_leaf_of{linear_f32<F>, linear_int8_of<F>()};
