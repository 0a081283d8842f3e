// Linear leaves on float activations: acc = fma(w[row][k], x[k], acc) for k ascending from acc = 0,
// w being the exactly decoded weight. Compiled once per instruction set by for_each_isa.inl;
// F32x16, its operations and `registers` are those of the surrounding namespace.

// Shapes of a register tile, in row tiles x tokens. GEMM holds gemm_tiles x gemm_tokens sums plus
// one weight per row tile; GEMV one sum per row tile, enough chains to hide the latency of an fma.
inline constexpr int gemm_tiles = registers >= 32 ? 6 : registers >= 8 ? 3 : 1;
inline constexpr int gemm_tokens = registers >= 32 ? 4 : registers >= 8 ? 2 : 1;
inline constexpr int gemv_tiles = registers >= 32 ? 8 : registers >= 8 ? 6 : 1;
// k is cut so that the decoded weights of a group of row tiles (panel_k * gemm_tiles vectors) stay
// in the first-level cache while all tokens of a pass use them. Sums wait in memory as the floats
// they are, so cutting changes no bit.
inline constexpr Dim panel_k = 64;
inline constexpr Dim panel_room = panel_k * gemm_tiles;
inline constexpr Dim pass_tokens = 64;

// Sixteen weights of one k in the file's own width.
TENON_LEAF inline F32x16 weights_at(F32, const std::byte* at) {
  return load(reinterpret_cast<const float*>(at));
}
TENON_LEAF inline F32x16 weights_at(F16, const std::byte* at) {
  return load_half(reinterpret_cast<const std::uint16_t*>(at));
}
TENON_LEAF inline F32x16 weights_at(Bf16, const std::byte* at) {
  return load_bf16(reinterpret_cast<const std::uint16_t*>(at));
}

// A token alone streams its weights: how far ahead of their use it asks for them. The address may
// lie past the weights, a prefetch never faults. `Locality` is the compilers': 3 means all caches,
// 2 all but the first.
inline constexpr Dim stream_ahead = 2048;
template <int Locality = 3>
inline void fetch(const std::byte* values, Dim offset) {
  const auto at = reinterpret_cast<std::uintptr_t>(values) + static_cast<std::uintptr_t>(offset);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, Locality);
}

// sums [N][R][16] (+)= x [N tokens][count] times R row tiles of dense weights [count][16]. Per k: R
// weight loads, N broadcasts, R * N fma. `Ahead` bytes are asked for ahead of their use.
template <class F, int R, int N, Dim Ahead = 0>
TENON_LEAF inline void dense_tile(const std::byte* const* weights, const float* x, Dim x_stride,
                                  Dim count, bool first, float* sums) {
  F32x16 acc[N * R];
  const std::byte* from[R];
  TENON_UNROLL
  for (int r = 0; r < R; ++r) from[r] = weights[r];
  TENON_UNROLL
  for (int i = 0; i < N * R; ++i) acc[i] = zero();
  if (!first) {
    TENON_UNROLL
    for (int i = 0; i < N * R; ++i) acc[i] = load(sums + 16 * i);
  }
  for (Dim k = 0; k < count; ++k) {
    constexpr Dim bytes = TileLayout<F>::value_bytes;
    F32x16 w[R];
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      if (Ahead > 0 && k % (64 / bytes) == 0) fetch(from[r], k * bytes + Ahead);
      w[r] = weights_at(F{}, from[r] + k * bytes);
    }
    TENON_UNROLL
    for (int n = 0; n < N; ++n) {
      const F32x16 xk = broadcast(x[n * x_stride + k]);
      TENON_UNROLL
      for (int r = 0; r < R; ++r) acc[n * R + r] = fma(w[r], xk, acc[n * R + r]);
    }
  }
  TENON_UNROLL
  for (int i = 0; i < N * R; ++i) store(sums + 16 * i, acc[i]);
}

// y of one tile and token from its finished sums.
TENON_LEAF inline void finish(const LinearTile& tile, Dim token, const float* sums) {
  float* y = tile.y + token * tile.y_stride;
  F32x16 value = load(sums);
  if (tile.rows == tile_rows) {
    if (tile.accumulate) value = add(load(y), value);
    store(y, value);
  } else {
    if (tile.accumulate) value = add(load_first(y, tile.rows), value);
    store_first(y, value, tile.rows);
  }
}

// One token times at most R row tiles, the weights straight from memory into the fma; tiles missing
// from the group repeat the first.
template <class F, int R>
TENON_LEAF inline void gemv_group(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (R > 1) {
    constexpr int smaller = R > 4 ? R - 4 : R / 2;
    if (count <= smaller) return gemv_group<F, smaller>(tiles, count, rows);
  }
  const std::byte* weights[R];
  for (int r = 0; r < R; ++r) weights[r] = tiles[r < count ? r : 0].weights.values;
  alignas(64) float sums[R * 16];
  dense_tile<F, R, 1, stream_ahead>(weights, rows.x, 0, rows.in, true, sums);
  for (int r = 0; r < count; ++r) finish(tiles[r], 0, sums + 16 * r);
}

// ---- several tokens: decode a cut of k once, then multiply all tokens by it ----

// Decodes k in [first, first + count) of a tile to floats [count][16] at `panel`, or finds them in
// the tile; returns where they are. `first` starts a block, or 32 k of a larger one that has
// integer tiles.
using FindPanel = const std::byte* (*)(const LinearTile& tile, Dim in, Dim first, Dim count,
                                       float* panel);

TENON_LEAF inline const std::byte* floats_of(const LinearTile& tile, Dim, Dim first, Dim, float*) {
  return tile.weights.values + first * Dim{TileLayout<F32>::value_bytes};
}
template <class F>
TENON_LEAF inline const std::byte* decode_dense(const LinearTile& tile, Dim, Dim first, Dim count,
                                                float* panel) {
  const std::byte* from = tile.weights.values + first * Dim{TileLayout<F>::value_bytes};
  for (Dim k = 0; k < count; ++k, from += TileLayout<F>::value_bytes) {
    store(panel + 16 * k, weights_at(F{}, from));
  }
  return reinterpret_cast<const std::byte*>(panel);
}
template <class F>
TENON_LEAF inline const std::byte* decode_blocks(const LinearTile& tile, Dim, Dim first, Dim count,
                                                 float* panel) {
  using Layout = TileLayout<F>;
  const F32x16 offset = broadcast(static_cast<float>(Layout::offset));
  float* to = panel;
  for (Dim u = first / 32; u < ceil_div(first + count, 32); ++u) {
    for (int half = 0; half < 2; ++half) {
      const F32x16 d = scales_at<F>(tile.weights.scales, u, half);
      for (int j = 0; j < 4; ++j, to += 4 * 16) {
        F32x16 q[4];
        widen_bytes64(quants_at<F>(tile.weights.values, u, j, half), q);
        for (int i = 0; i < 4; ++i) {
          if constexpr (Layout::kind.minima) {
            store(to + 16 * i, fma(d, q[i], minima_at<F>(tile.weights.scales, u, half)));
          } else {
            store(to + 16 * i, mul(d, sub(q[i], offset)));
          }
        }
      }
    }
  }
  return reinterpret_cast<const std::byte*>(panel);
}
// A format of which only decode() is known: its rows, decoded and transposed.
template <class F>
TENON_LEAF inline const std::byte* decode_rows(const LinearTile& tile, Dim in, Dim first, Dim count,
                                               float* panel) {
  float row[panel_room];
  const std::byte* from = tile.weights.values;
  for (Dim k = 0; k < count; ++k) store(panel + 16 * k, zero());
  for (int r = 0; r < tile.rows; ++r, from += row_bytes<F>(in)) {
    decode_part<F>(from, first, count, row);
    for (Dim k = 0; k < count; ++k) panel[16 * k + r] = row[k];
  }
  return reinterpret_cast<const std::byte*>(panel);
}

// How a format is cut along k: by 32 k where it has integer tiles, else whole blocks when they fit
// the panel's room.
struct PanelSource {
  FindPanel find;
  Dim chunk;  // k of a cut
  Dim bytes;  // of a tile's values in a cut; 0: they are not contiguous
};
template <class F>
constexpr PanelSource panel_source_of() {
  constexpr Dim block = F::block;
  constexpr Dim chunk = IntegerTiled<F> || block > panel_room ? panel_k
                        : block > panel_k                     ? block
                                                              : panel_k / block * block;
  if constexpr (!Tiled<F>) {
    return {decode_rows<F>, chunk, 0};
  } else {
    using Layout = TileLayout<F>;
    if constexpr (std::is_same_v<F, F32>) {
      return {floats_of, chunk, chunk * Dim{Layout::value_bytes}};
    } else if constexpr (IntegerTiled<F>) {
      return {decode_blocks<F>, chunk, chunk / 32 * Dim{Layout::unit_bytes}};
    } else {
      return {decode_dense<F>, chunk, chunk * Dim{Layout::value_bytes}};
    }
  }
}

// Fetches the weights of the next cut while this one computes: part `part` of `parts` of the
// `bytes` from byte `first` on of each of `count` tiles' values.
inline void prefetch_part(const LinearTile* tiles, int count, Dim first, Dim bytes, Dim part,
                          Dim parts) {
  const Dim begin = bytes * part / parts / 64 * 64;
  const Dim end = bytes * (part + 1) / parts / 64 * 64;
  for (int r = 0; r < count; ++r) {
    for (Dim i = begin; i < end; i += 64) fetch(tiles[r].weights.values, first + i);
  }
}

// All tokens times at most R row tiles; tiles missing from the group repeat the first.
template <int R>
TENON_LEAF inline void gemm_group(const LinearTile* tiles, int count, const LinearRows& rows,
                                  const PanelSource& source) {
  if constexpr (R > 3) {
    if (count <= 3) return gemm_group<3>(tiles, count, rows, source);
  }
  alignas(64) float panel[panel_room * 16];
  alignas(64) float sums[pass_tokens * R * 16];
  for (Dim t0 = 0; t0 < rows.tokens; t0 += pass_tokens) {
    const Dim tokens = (std::min)(pass_tokens, rows.tokens - t0);
    for (Dim k = 0; k < rows.in; k += source.chunk) {
      const Dim depth = (std::min)(source.chunk, rows.in - k);
      const std::byte* weights[R] = {};
      const Dim next = (k / source.chunk + 1) * source.bytes;
      for (int r = 0; r < R; ++r) {
        weights[r] = r < count
                         ? source.find(tiles[r], rows.in, k, depth, panel + r * source.chunk * 16)
                         : weights[0];
      }
      const float* x = rows.x + t0 * rows.in + k;
      Dim t = 0;
      for (; t + gemm_tokens <= tokens; t += gemm_tokens) {
        prefetch_part(tiles, count, next, source.bytes, t / gemm_tokens, tokens / gemm_tokens);
        dense_tile<F32, R, gemm_tokens>(weights, x + t * rows.in, rows.in, depth, k == 0,
                                        sums + t * R * 16);
      }
      for (; t < tokens; ++t) {
        dense_tile<F32, R, 1>(weights, x + t * rows.in, rows.in, depth, k == 0, sums + t * R * 16);
      }
    }
    for (Dim t = 0; t < tokens; ++t) {
      for (int r = 0; r < count; ++r) finish(tiles[r], t0 + t, sums + (t * R + r) * 16);
    }
  }
}

template <class F>
TENON_LEAF inline void linear_f32(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (Tiled<F> && !IntegerTiled<F>) {
    if (rows.tokens == 1) {
      for (; count > 0; tiles += gemv_tiles, count -= gemv_tiles) {
        gemv_group<F, gemv_tiles>(tiles, (std::min)(count, gemv_tiles), rows);
      }
      return;
    }
  }
  static constexpr PanelSource source = panel_source_of<F>();
  constexpr int most = static_cast<int>((std::min)(Dim{gemm_tiles}, panel_room / source.chunk));
  for (; count > 0; tiles += most, count -= most) {
    gemm_group<gemm_tiles>(tiles, (std::min)(count, most), rows, source);
  }
}
