// Linear leaves on float activations: acc = fma(w[row][k], x[k], acc) for k ascending from acc = 0,
// w being the exactly decoded weight. Compiled once per instruction set by for_each_isa.inl;
// F32x16, its operations and `registers` are those of the surrounding namespace.

// Shapes of a register tile, in row tiles x tokens. GEMM holds gemm_tiles x gemm_tokens sums plus
// one weight per row tile; 4 x 6 was measured to be faster than 6 x 4, which loads as much. GEMV
// holds one sum per row tile, enough chains to hide the latency of an fma.
inline constexpr int gemm_tiles = registers >= 32 ? 4 : registers >= 8 ? 3 : 1;
inline constexpr int gemm_tokens = registers >= 32 ? 6 : registers >= 8 ? 2 : 1;
inline constexpr int gemv_tiles = registers >= 32 ? 8 : registers >= 8 ? 6 : 1;
// k is cut so that the decoded weights of a group of row tiles (panel_k * gemm_tiles vectors) stay
// in the first-level cache while all tokens of a pass use them; a pass has so many tokens that
// decoding is little beside that, and so many row tiles that reading the tokens' cut is. Sums wait
// in memory as the floats they are, so cutting changes no bit.
inline constexpr Dim panel_k = 96;
inline constexpr Dim panel_room = panel_k * gemm_tiles;
inline constexpr Dim pass_tokens = 128;
inline constexpr int pass_groups = most_tiles_a_call / 2 / gemm_tiles;

// Up to here decoding dense weights anew for every gemm_tokens costs less than panels of them.
inline constexpr Dim direct_tokens = gemm_tokens > 4 ? few_tokens : 0;

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

// Few tokens stream their weights: how far ahead of their use they ask for them, in each of their
// streams, as measured; a token alone with dense weights, in more streams, less far. The address
// may lie past the weights, a prefetch never faults. `Locality` is the compilers': 3 means all
// caches, 2 all but the first.
inline constexpr Dim stream_ahead = 2048, dense_ahead = 512;
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

// N tokens times at most R row tiles, the weights straight from memory into the fma; tiles missing
// from the group repeat the first.
template <class F, int R, int N>
TENON_LEAF inline void dense_group(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (R > 1) {
    constexpr int smaller = R > 4 ? R - 4 : R / 2;
    if (count <= smaller) return dense_group<F, smaller, N>(tiles, count, rows);
  }
  const std::byte* weights[R];
  for (int r = 0; r < R; ++r) weights[r] = tiles[r < count ? r : 0].weights.values;
  alignas(64) float sums[N * R * 16];
  dense_tile<F, R, N, (N == 1 ? dense_ahead : stream_ahead)>(weights, rows.x, rows.in, rows.in,
                                                             true, sums);
  for (int n = 0; n < N; ++n) {
    for (int r = 0; r < count; ++r) finish(tiles[r], n, sums + (n * R + r) * 16);
  }
}
// All tokens times all tiles of a call if they are at most N, as many as a register tile has;
// false, and nothing done, if there are more.
template <class F, int N>
TENON_LEAF inline bool dense_groups(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (N > 1) {
    if (rows.tokens < N) return dense_groups<F, N - 1>(tiles, count, rows);
  }
  constexpr int most = N == 1 ? gemv_tiles : gemm_tiles;
  if (rows.tokens > N) return false;
  for (; count > 0; tiles += most, count -= most) {
    dense_group<F, most, N>(tiles, (std::min)(count, most), rows);
  }
  return true;
}

// ---- more tokens: a cut of k at a time, decoded once for all tokens or as it is stored ----

// Decodes k in [first, first + count) of a tile to floats [count][16] at `panel`, or finds them in
// the tile as it has them; returns where they are. `first` starts a block, or 32 k of one that is
// larger than the panel or has integer tiles.
using FindPanel = const std::byte* (*)(const LinearTile& tile, Dim in, Dim first, Dim count,
                                       float* panel);

template <class F>
TENON_LEAF inline const std::byte* dense_at(const LinearTile& tile, Dim, Dim first, Dim, float*) {
  return tile.weights.values + first * Dim{TileLayout<F>::value_bytes};
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
      return {dense_at<F32>, chunk, chunk * Dim{Layout::value_bytes}};
    } else if constexpr (IntegerTiled<F>) {
      return {decode_blocks<F>, chunk, chunk / 32 * Dim{Layout::unit_bytes}};
    } else {
      return {decode_dense<F>, chunk, chunk * Dim{Layout::value_bytes}};
    }
  }
}

// The weights that come next, fetched while others are used: of each of `count` tiles, `bytes` from
// byte `first` on.
struct NextWeights {
  const LinearTile* tiles;
  int count;
  Dim first, bytes;
  // Their part for tokens [begin, end) of so many.
  void fetch_part(Dim begin, Dim end, Dim tokens) const {
    begin = bytes * begin / tokens / 64 * 64;
    end = bytes * end / tokens / 64 * 64;
    for (int r = 0; r < count; ++r) {
      for (Dim i = begin; i < end; i += 64) fetch(tiles[r].weights.values, first + i);
    }
  }
};
// A cut of the tokens of a pass: x [tokens][depth], rows `stride` apart, the first cut or not.
struct InputCut {
  const float* x;
  Dim stride, tokens, depth;
  bool first;
};

// sums [tokens][R][16] (+)= x times R row tiles of weights as W has them, from token t on as far as
// there are N at a time; the token after them.
template <class W, int R, int N>
TENON_LEAF inline Dim gemm_tokens_from(Dim t, const std::byte* const* weights, const InputCut& cut,
                                       const NextWeights& next, float* sums) {
  for (; t + N <= cut.tokens; t += N) {
    next.fetch_part(t, t + N, cut.tokens);
    dense_tile<W, R, N>(weights, cut.x + t * cut.stride, cut.stride, cut.depth, cut.first,
                        sums + t * R * 16);
  }
  return t;
}
template <class W, int R>
TENON_LEAF inline void gemm_group(const std::byte* const* weights, const InputCut& cut,
                                  const NextWeights& next, float* sums) {
  Dim t = gemm_tokens_from<W, R, gemm_tokens>(0, weights, cut, next, sums);
  if constexpr (gemm_tokens > 4) t = gemm_tokens_from<W, R, 4>(t, weights, cut, next, sums);
  if constexpr (gemm_tokens > 2) t = gemm_tokens_from<W, R, 2>(t, weights, cut, next, sums);
  if constexpr (gemm_tokens > 1) gemm_tokens_from<W, R, 1>(t, weights, cut, next, sums);
}
// Row tiles that are computed for n of them; those missing repeat the first.
constexpr int gemm_width(int n) {
  return n <= gemm_tiles / 2 ? gemm_tiles / 2 : gemm_tiles;
}

// Tokens [t0, t0 + tokens) of a pass times at most pass_groups * `group` row tiles. Takes up to
// 120 KB of the stack, which is not for one token's path to carry.
template <class W>
[[gnu::noinline]] TENON_LEAF inline void gemm_pass(const LinearTile* tiles, int count,
                                                   const LinearRows& rows, Dim t0, Dim tokens,
                                                   const PanelSource& source, int group) {
  alignas(64) float panel[panel_room * 16];
  alignas(64) float sums[pass_groups * gemm_tiles * pass_tokens * 16];
  const Dim group_sums = tokens * gemm_tiles * 16;
  for (Dim k = 0; k < rows.in; k += source.chunk) {
    const InputCut cut{rows.x + t0 * rows.in + k, rows.in, tokens,
                       (std::min)(source.chunk, rows.in - k), k == 0};
    for (int g = 0, at = 0; at < count; ++g, at += group) {
      const int n = (std::min)(group, count - at);
      const std::byte* weights[gemm_tiles] = {};
      for (int r = 0; r < gemm_tiles; ++r) {
        weights[r] =
            r < n ? source.find(tiles[at + r], rows.in, k, cut.depth, panel + r * source.chunk * 16)
                  : weights[0];
      }
      const bool cut_ends = at + n == count, ends = cut_ends && k + source.chunk >= rows.in;
      const int after = cut_ends ? 0 : at + n;
      const NextWeights next{tiles + after, ends ? 0 : (std::min)(group, count - after),
                             (k / source.chunk + (cut_ends ? 1 : 0)) * source.bytes, source.bytes};
      float* to = sums + g * group_sums;
      if (gemm_width(n) == gemm_tiles) {
        gemm_group<W, gemm_tiles>(weights, cut, next, to);
      } else {
        gemm_group<W, gemm_width(1)>(weights, cut, next, to);
      }
    }
  }
  for (int g = 0, at = 0; at < count; ++g, at += group) {
    const int n = (std::min)(group, count - at);
    for (Dim t = 0; t < tokens; ++t) {
      const float* from = sums + g * group_sums + t * gemm_width(n) * 16;
      for (int r = 0; r < n; ++r) finish(tiles[at + r], t0 + t, from + r * 16);
    }
  }
}

template <class W>
TENON_LEAF inline void gemm_passes(const LinearTile* tiles, int count, const LinearRows& rows,
                                   const PanelSource& source) {
  const int group = static_cast<int>((std::min)(Dim{gemm_tiles}, panel_room / source.chunk));
  const int most = pass_groups * group;
  for (; count > 0; tiles += most, count -= most) {
    for (Dim t = 0; t < rows.tokens; t += pass_tokens) {
      gemm_pass<W>(tiles, (std::min)(count, most), rows, t,
                   (std::min)(pass_tokens, rows.tokens - t), source, group);
    }
  }
}

template <class F>
TENON_LEAF inline void linear_f32(const LinearTile* tiles, int count, const LinearRows& rows) {
  static constexpr PanelSource source = panel_source_of<F>();
  if constexpr (Tiled<F> && !IntegerTiled<F>) {
    if (dense_groups<F, gemm_tokens>(tiles, count, rows)) return;
    if constexpr (direct_tokens > 0 && !std::is_same_v<F, F32>) {
      static constexpr PanelSource direct{dense_at<F>, source.chunk, source.bytes};
      if (rows.tokens <= direct_tokens) return gemm_passes<F>(tiles, count, rows, direct);
    }
  }
  gemm_passes<F32>(tiles, count, rows, source);
}
