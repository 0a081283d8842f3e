// Linear leaves on int8 activations, for block formats. Per 32-k block, ascending from acc = 0:
//   dot = sum over the block of w_q x_q, exact;   acc = fma(float(dot) * d_w, d_x, acc)
//   Q4_1 then adds its minimum:                   acc = fma(m_w, d_x * float(sum of x_q), acc)
// Compiled once per instruction set; ByteDot is that of the surrounding namespace.

// Blocks per cut of k: the weights of a group of tiles stay in the first-level cache for a pass.
inline constexpr Dim integer_blocks = 16;
inline constexpr Dim integer_pass = 128;               // tokens of a pass
inline constexpr Dim expanded_bytes = 32 * tile_rows;  // of a block of nibbles spread to bytes

// sums [N][R][16] (+)= x [N tokens] times R row tiles, `blocks` blocks of each. Per block: 8
// vectors of 64 weights per row tile, 8 broadcasts per token, 8 R N dot instructions, 2 (Q4_1: 3)
// fma per sum. The integer sums start at the bits of the float 1.5 * 2^23, at which an ulp is 1:
// read as a float they are 1.5 * 2^23 + dot, and fma(that, d_w, -1.5 * 2^23 d_w) rounds dot * d_w
// once.
template <class F, bool Expanded, int R, int N>
TENON_LEAF inline void integer_tile(const std::byte* const* values, const std::byte* const* scales,
                                    const QuantizedRows& x, Dim blocks, bool first, float* sums) {
  using Layout = TileLayout<F>;
  constexpr Dim stride = Expanded ? expanded_bytes : Dim{Layout::value_bytes};
  constexpr int kept = Layout::nibbles ? Layout::offset : ByteDot::kept_offset;
  constexpr std::int32_t magic_bits = 0x4b400000;
  const F32x16 minus_magic = broadcast(-12582912.0f);
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
      const I32x16 start = broadcast_int(magic_bits - kept * x.sums[n * x.blocks + b]);
      TENON_UNROLL
      for (int r = 0; r < R; ++r) dot[n * R + r] = start;
    }
    TENON_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int j = i / 2 + i % 2 * 4;  // both halves of a vector of nibbles together
      Bytes64 w[R];
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const std::byte* block = values[r] + b * stride;
        w[r] = Expanded ? load_bytes64(block + 64 * j) : quants_at<F>(block, j);
      }
      TENON_UNROLL
      for (int n = 0; n < N; ++n) {
        const Bytes64 four = broadcast_four(x.values + (n * x.blocks + b) * 32 + 4 * j);
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          I32x16& to = dot[n * R + r];
          to = Layout::nibbles ? ByteDot::nibbles(to, w[r], four) : ByteDot::bytes(to, w[r], four);
        }
      }
    }
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      const auto* halves =
          reinterpret_cast<const std::uint16_t*>(scales[r] + b * Dim{Layout::scale_bytes});
      const F32x16 d = load_half(halves);
      const F32x16 back = mul(d, minus_magic);
      TENON_UNROLL
      for (int n = 0; n < N; ++n) {
        const float dx = x.scales[n * x.blocks + b];
        F32x16& to = acc[n * R + r];
        to = fma(fma(float_of_bits(dot[n * R + r]), d, back), broadcast(dx), to);
        if constexpr (Layout::minima) {
          const float weight = dx * static_cast<float>(x.sums[n * x.blocks + b]);
          to = fma(load_half(halves + 16), broadcast(weight), to);
        }
      }
    }
  }
  TENON_UNROLL
  for (int i = 0; i < N * R; ++i) store(sums + 16 * i, acc[i]);
}

// Spreads the nibbles of `blocks` blocks to bytes [blocks][8][64].
template <class F>
TENON_LEAF inline void expand_nibbles(const std::byte* from, Dim blocks, std::byte* to) {
  for (Dim b = 0; b < blocks; ++b, from += TileLayout<F>::value_bytes) {
    for (int j = 0; j < 8; ++j, to += 64) store_bytes64(to, quants_at<F>(from, j));
  }
}

// Any number of tokens times at most R row tiles.
template <class F, int R>
TENON_LEAF inline void integer_group(const LinearTile* tiles, int count, const LinearRows& rows) {
  using Layout = TileLayout<F>;
  if constexpr (R > 1) {
    if (count <= R / 2) return integer_group<F, R / 2>(tiles, count, rows);
  }
  constexpr bool expand = Layout::nibbles && ByteDot::tokens > 1;
  alignas(64) std::byte panel[expand ? R * integer_blocks * expanded_bytes : 1];
  alignas(64) float sums[integer_pass * R * 16];
  const QuantizedRows& all = rows.quantized;
  for (Dim t0 = 0; t0 < rows.tokens; t0 += integer_pass) {
    const Dim tokens = (std::min)(integer_pass, rows.tokens - t0);
    const Dim cut = tokens == 1 ? all.blocks : integer_blocks;
    for (Dim b = 0; b < all.blocks; b += cut) {
      const Dim depth = (std::min)(cut, all.blocks - b);
      const std::byte* values[R];
      const std::byte* expanded[R];
      const std::byte* scales[R];
      for (int r = 0; r < R; ++r) {  // tiles missing from the group repeat the first
        const TileWeights& weights = tiles[r < count ? r : 0].weights;
        values[r] = weights.values + b * Dim{Layout::value_bytes};
        scales[r] = weights.scales + b * Dim{Layout::scale_bytes};
        expanded[r] = values[r];
        if constexpr (expand) {
          if (tokens >= ByteDot::tokens) {
            std::byte* to = panel + (r < count ? r : 0) * integer_blocks * expanded_bytes;
            if (r < count) expand_nibbles<F>(values[r], depth, to);
            expanded[r] = to;
          }
        }
      }
      const Dim ahead = b + 2 * cut <= all.blocks ? cut * Dim{Layout::value_bytes} : 0;
      Dim t = 0;
      for (; t + ByteDot::tokens <= tokens; t += ByteDot::tokens) {
        prefetch_part(tiles, count, (b + cut) * Dim{Layout::value_bytes}, ahead,
                      t / ByteDot::tokens, tokens / ByteDot::tokens);
        integer_tile<F, expand, R, ByteDot::tokens>(expanded, scales, all.at(t0 + t, b), depth,
                                                    b == 0, sums + t * R * 16);
      }
      for (; t < tokens; ++t) {
        integer_tile<F, false, R, 1>(values, scales, all.at(t0 + t, b), depth, b == 0,
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
  for (; count > 0; tiles += ByteDot::tiles, count -= ByteDot::tiles) {
    integer_group<F, ByteDot::tiles>(tiles, (std::min)(count, ByteDot::tiles), rows);
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
