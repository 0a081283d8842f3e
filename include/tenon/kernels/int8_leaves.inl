// Linear leaves on int8 activations, for block formats. Per 32-k block, ascending from acc = 0:
//   dot = sum over the block of w_q x_q, exact;   acc = fma(float(dot) * d_w, d_x, acc)
//   Q4_1 then adds its minimum:                   acc = fma(m_w, d_x * float(sum of x_q), acc)
// Compiled once per instruction set; ByteDot is that of the surrounding namespace.

// Blocks per cut of k: the weights of a group of tiles stay in the first-level cache for a pass.
inline constexpr Dim integer_blocks = 16;
inline constexpr Dim integer_pass = 128;  // tokens of a pass
// A token alone streams its weights: how far ahead of their use it asks for them. The address may
// lie past the weights, a prefetch never faults.
inline constexpr Dim stream_ahead = 2048;
// The float 1.5 * 2^23: its bits plus an integer below 2^22 in magnitude are it plus that integer.
inline constexpr float integral = 12582912.0f;
inline constexpr std::int32_t integral_bits = 0x4b400000;
// A block of a tile as a register tile of several tokens reads it: a byte for every quant, and
// floats [16] of d, of -integral * d and, where the format has them, of minima.
template <class F>
inline constexpr bool spreads_quants = TileLayout<F>::nibbles ? ByteDot::tokens > 1 : false;
template <class F>
inline constexpr Dim spread_stride =
    spreads_quants<F> ? 32 * tile_rows : TileLayout<F>::value_bytes;
template <class F>
inline constexpr Dim spread_scales = (TileLayout<F>::minima ? 3 : 2) * tile_rows;

// sums [N][R][16] (+)= x [N tokens] times R row tiles, `blocks` blocks of each. Per block: 8
// vectors of 64 weights per row tile, 8 broadcasts per token, 8 R N dot instructions, 2 (Q4_1: 3)
// fma per sum. Integer sums start at integral_bits, and fma(integral + dot, d_w, -integral d_w)
// rounds dot * d_w once. (MXFP4 scales of 2^104 and more overflow there: the row becomes NaN.)
template <class F, bool Spread, int R, int N>
TENON_LEAF inline void integer_tile(const std::byte* const* values, const std::byte* const* scales,
                                    const QuantizedRows& x, Dim blocks, bool first, float* sums) {
  using Layout = TileLayout<F>;
  constexpr Dim stride = Spread ? spread_stride<F> : Dim{Layout::value_bytes};
  constexpr int kept = Layout::nibbles ? Layout::offset : ByteDot::kept_offset;
  F32x16 acc[N * R];
  TENON_UNROLL
  for (int i = 0; i < N * R; ++i) acc[i] = zero();
  if (!first) {
    TENON_UNROLL
    for (int i = 0; i < N * R; ++i) acc[i] = load(sums + 16 * i);
  }
  for (Dim b = 0; b < blocks; ++b) {
    I32x16 dot[N * R];
    TENON_UNROLL
    for (int n = 0; n < N; ++n) {
      const I32x16 start = broadcast_int(integral_bits - kept * x.sums[n * x.blocks + b]);
      TENON_UNROLL
      for (int r = 0; r < R; ++r) dot[n * R + r] = start;
    }
    for (int j = 0; j < 4; ++j) {
      TENON_UNROLL
      for (int half = 0; half < 2; ++half) {
        Bytes64 w[R];
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          const std::byte* block = values[r] + b * stride;
          const std::byte* at = block + 64 * (4 * half + j);
          if (N == 1 && 256 * half < stride) __builtin_prefetch(at + stream_ahead);
          w[r] = Spread ? load_bytes64(at) : quants_at<F>(block, j, half);
        }
        TENON_UNROLL
        for (int n = 0; n < N; ++n) {
          const std::int8_t* xs = x.values + (n * x.blocks + b) * 32;
          const Bytes64 four = broadcast_four(xs + 16 * half + 4 * j);
          TENON_UNROLL
          for (int r = 0; r < R; ++r) {
            I32x16& to = dot[n * R + r];
            to =
                Layout::nibbles ? ByteDot::nibbles(to, w[r], four) : ByteDot::bytes(to, w[r], four);
          }
        }
      }
    }
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      F32x16 d, back, minimum;
      if constexpr (Spread) {
        const float* floats = reinterpret_cast<const float*>(scales[r]) + b * spread_scales<F>;
        d = load(floats);
        back = load(floats + 16);
        if constexpr (Layout::minima) minimum = load(floats + 32);
      } else {
        const std::byte* stored = scales[r] + b * Dim{Layout::scale_bytes};
        d = scales_at<F>(stored);
        back = mul(d, broadcast(-integral));
        if constexpr (Layout::minima) minimum = scales_at<F>(stored + 32);
      }
      TENON_UNROLL
      for (int n = 0; n < N; ++n) {
        const float dx = x.scales[n * x.blocks + b];
        F32x16& to = acc[n * R + r];
        to = fma(fma(float_of_bits(dot[n * R + r]), d, back), broadcast(dx), to);
        if constexpr (Layout::minima) {
          const float weight = dx * static_cast<float>(x.sums[n * x.blocks + b]);
          to = fma(minimum, broadcast(weight), to);
        }
      }
    }
  }
  TENON_UNROLL
  for (int i = 0; i < N * R; ++i) store(sums + 16 * i, acc[i]);
}

template <class F>
TENON_LEAF inline void spread_blocks(const std::byte* values, const std::byte* scales, Dim blocks,
                                     std::byte* to_values, float* to_scales) {
  using Layout = TileLayout<F>;
  for (Dim b = 0; b < blocks; ++b) {
    if constexpr (spreads_quants<F>) {
      for (int j = 0; j < 8; ++j, to_values += 64)
        store_bytes64(to_values, quants_at<F>(values, j % 4, j / 4));
      values += Layout::value_bytes;
    }
    const F32x16 d = scales_at<F>(scales);
    store(to_scales, d);
    store(to_scales + 16, mul(d, broadcast(-integral)));
    if constexpr (Layout::minima) store(to_scales + 32, scales_at<F>(scales + 32));
    scales += Layout::scale_bytes;
    to_scales += spread_scales<F>;
  }
}

// One token times at most R row tiles, which missing ones repeat the first of.
template <class F, int R>
TENON_LEAF inline void integer_gemv(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (R > 1) {
    if (count <= R / 2) return integer_gemv<F, R / 2>(tiles, count, rows);
  }
  const std::byte* values[R];
  const std::byte* scales[R];
  for (int r = 0; r < R; ++r) {
    values[r] = tiles[r < count ? r : 0].weights.values;
    scales[r] = tiles[r < count ? r : 0].weights.scales;
  }
  alignas(64) float sums[R * 16];
  integer_tile<F, false, R, 1>(values, scales, rows.quantized, rows.quantized.blocks, true, sums);
  for (int r = 0; r < count; ++r) finish(tiles[r], 0, sums + 16 * r);
}

// Any number of tokens times at most R row tiles.
template <class F, int R>
TENON_LEAF inline void integer_gemm(const LinearTile* tiles, int count, const LinearRows& rows) {
  using Layout = TileLayout<F>;
  constexpr bool spread = ByteDot::tokens > 1;
  constexpr Dim value_room = spreads_quants<F> ? integer_blocks * spread_stride<F> : 0;
  constexpr Dim scale_room = spread ? integer_blocks * spread_scales<F> : 0;
  alignas(64) std::byte value_panel[R * value_room + 1];
  alignas(64) float scale_panel[R * scale_room + 1];
  alignas(64) float sums[integer_pass * R * 16];
  const QuantizedRows& all = rows.quantized;
  for (Dim t0 = 0; t0 < rows.tokens; t0 += integer_pass) {
    const Dim tokens = (std::min)(integer_pass, rows.tokens - t0);
    for (Dim b = 0; b < all.blocks; b += integer_blocks) {
      const Dim depth = (std::min)(integer_blocks, all.blocks - b);
      const std::byte* stored[2][R];  // values and scales in the tiles,
      const std::byte* ready[2][R];   // and as tiles of several tokens read them
      for (int r = 0; r < R; ++r) {   // tiles missing from the group repeat the first
        const int tile = r < count ? r : 0;
        const TileWeights& weights = tiles[tile].weights;
        stored[0][r] = ready[0][r] = weights.values + b * Dim{Layout::value_bytes};
        stored[1][r] = ready[1][r] = weights.scales + b * Dim{Layout::scale_bytes};
        if constexpr (spread) {
          if (tokens < ByteDot::tokens) continue;
          std::byte* to_values = value_panel + tile * value_room;
          float* to_scales = scale_panel + tile * scale_room;
          if (r < count) spread_blocks<F>(stored[0][r], stored[1][r], depth, to_values, to_scales);
          if constexpr (spreads_quants<F>) ready[0][r] = to_values;
          ready[1][r] = reinterpret_cast<const std::byte*>(to_scales);
        }
      }
      const Dim cut_bytes = integer_blocks * Dim{Layout::value_bytes};
      const Dim next = (b / integer_blocks + 1) * cut_bytes;
      const Dim ahead = b + 2 * integer_blocks <= all.blocks ? cut_bytes : 0;
      Dim t = 0;
      for (; t + ByteDot::tokens <= tokens; t += ByteDot::tokens) {
        prefetch_part(tiles, count, next, ahead, t / ByteDot::tokens, tokens / ByteDot::tokens);
        integer_tile<F, spread, R, ByteDot::tokens>(ready[0], ready[1], all.at(t0 + t, b), depth,
                                                    b == 0, sums + t * R * 16);
      }
      for (; t < tokens; ++t) {
        integer_tile<F, false, R, 1>(stored[0], stored[1], all.at(t0 + t, b), depth, b == 0,
                                     sums + t * R * 16);
      }
    }
    for (Dim t = 0; t < tokens; ++t) {
      for (int r = 0; r < count; ++r) finish(tiles[r], t0 + t, sums + (t * R + r) * 16);
    }
  }
}

template <class F>
TENON_LEAF inline void linear_int8(const LinearTile* tiles, int count, const LinearRows& rows) {
  constexpr int most = ByteDot::tiles, most_alone = 2 * most;  // one token: more streams of weights
  if (rows.tokens == 1) {
    for (; count > 0; tiles += most_alone, count -= most_alone) {
      integer_gemv<F, most_alone>(tiles, (std::min)(count, most_alone), rows);
    }
    return;
  }
  for (; count > 0; tiles += most, count -= most) {
    integer_gemm<F, most>(tiles, (std::min)(count, most), rows);
  }
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
