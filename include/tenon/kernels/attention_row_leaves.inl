// Rows of a tile of `key_tile` keys as attention reads them, and the sum of their values. Compiled
// once per instruction set by for_each_isa.inl. The output is a fold over keys in ascending order.

// How each element format is read: sixteen values of a row from value d on, d a multiple of 16
// unless the format has values of any width, and sixteen transposed keys, of type Key.
struct F32Rows {
  using Key = float;
  TENON_LEAF static F32x16 load_keys(const float* keys) { return load(keys); }
  static constexpr bool any_width = true;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d * 4; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    return load(reinterpret_cast<const float*>(row) + d);
  }
  TENON_LEAF static F32x16 load_some(const std::byte* row, Dim d, int n) {
    return load_first(reinterpret_cast<const float*>(row) + d, n);
  }
};
struct F16Rows {
  using Key = std::uint16_t;
  TENON_LEAF static F32x16 load_keys(const std::uint16_t* keys) { return load_half(keys); }
  static constexpr bool any_width = false;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d * 2; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    return load_half(reinterpret_cast<const std::uint16_t*>(row) + d);
  }
};
struct Bf16Rows {
  using Key = std::uint16_t;
  TENON_LEAF static F32x16 load_keys(const std::uint16_t* keys) { return load_bf16(keys); }
  static constexpr bool any_width = false;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d * 2; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(row) + d);
  }
};
// Blocks of 32: a half, the scale, and 32 bytes.
struct Q8Rows {
  using Key = float;
  TENON_LEAF static F32x16 load_keys(const float* keys) { return load(keys); }
  static constexpr bool any_width = false;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d / 32 * 34; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    const std::byte* block = at(row, d);
    const auto* bytes = reinterpret_cast<const std::int8_t*>(block) + 2 + d % 32;
    return mul(load_bytes(bytes), broadcast_half(block));
  }
};
// Fetches a leaf's lines of TileAhead, evenly over a loop of so many steps. Between two of them
// only a count is held in a register: the loop needs the others.
class Ahead {
 public:
  TENON_LEAF Ahead(TileAhead& tile, int steps) : tile_(tile) {
    tile.lines = tile.lines < tile.remaining ? tile.lines : tile.remaining;
    tile.remaining -= tile.lines;
    tile.steps = steps > 0 ? steps : 1;
  }
  TENON_LEAF void step() {
    due_ += tile_.lines;
    while (due_ >= tile_.steps) {
      due_ -= tile_.steps;
      TENON_UNROLL
      for (int g = 0; g < 4; ++g) __builtin_prefetch(tile_.group[g] + tile_.offset, 0, 2);
      tile_.next();
    }
  }

 private:
  TileAhead& tile_;
  int due_ = 0;
};

// output[q][C vectors] = output * factor[q] + sum over kept rows of weight * value.
template <class R, int Q, int C>
TENON_LEAF inline void accumulate_block(const float* weights, const float* factors,
                                        std::uint64_t keep, const TileRows& rows, Ahead& later,
                                        Dim d, Dim dim, float* outputs) {
  F32x16 acc[Q][C];
  TENON_UNROLL
  for (int q = 0; q < Q; ++q) {
    TENON_UNROLL
    for (int c = 0; c < C; ++c) {
      acc[q][c] = mul(load(outputs + q * dim + d + 16 * c), broadcast(factors[q]));
    }
  }
  for (int group = 0; group < 4; ++group, weights += 16) {
    const std::byte* values = rows.group[group];
    const float* weight = weights;
    for (auto bits = static_cast<unsigned>(keep >> (16 * group) & 0xffffu); bits != 0;
         bits >>= 1, values += rows.stride, ++weight) {
      if ((bits & 1u) == 0) continue;
      later.step();
      TENON_UNROLL
      for (int c = 0; c < C; ++c) {
        const F32x16 value = R::load16(values, rows.first + d + 16 * c);
        TENON_UNROLL
        for (int q = 0; q < Q; ++q) {
          acc[q][c] = fma(broadcast(weight[q * key_tile]), value, acc[q][c]);
        }
      }
    }
  }
  TENON_UNROLL
  for (int q = 0; q < Q; ++q) {
    TENON_UNROLL
    for (int c = 0; c < C; ++c) store(outputs + q * dim + d + 16 * c, acc[q][c]);
  }
}
// The same for n < 16 values from d on of H heads side by side, `count` queries of each, of which Q
// are folded: chains enough to hide the latency of an fma where a head is narrow.
template <class R, int Q, int H>
TENON_LEAF inline void accumulate_some(const float* weights, const float* factors, int count,
                                       std::uint64_t keep, const TileRows& rows, Dim d, int n,
                                       Dim dim, float* outputs) {
  F32x16 acc[H][Q];
  TENON_UNROLL
  for (int h = 0; h < H; ++h) {
    TENON_UNROLL
    for (int q = 0; q < Q; ++q) {
      const int i = h * count + q;
      acc[h][q] = mul(load_first(outputs + i * dim + d, n), broadcast(factors[i]));
    }
  }
  for (int group = 0; group < 4; ++group, weights += 16) {
    const std::byte* values = rows.group[group];
    const float* weight = weights;
    for (auto bits = static_cast<unsigned>(keep >> (16 * group) & 0xffffu); bits != 0;
         bits >>= 1, values += rows.stride, ++weight) {
      if ((bits & 1u) == 0) continue;
      TENON_UNROLL
      for (int h = 0; h < H; ++h) {
        const F32x16 value = R::load_some(values, rows.first + h * dim + d, n);
        TENON_UNROLL
        for (int q = 0; q < Q; ++q) {
          acc[h][q] = fma(broadcast(weight[(h * count + q) * key_tile]), value, acc[h][q]);
        }
      }
    }
  }
  TENON_UNROLL
  for (int h = 0; h < H; ++h) {
    TENON_UNROLL
    for (int q = 0; q < Q; ++q) store_first(outputs + (h * count + q) * dim + d, acc[h][q], n);
  }
}
// Queries q and later of heads narrower than a vector, Q and then fewer of four heads or one at a
// time.
template <class R, int Q>
TENON_LEAF inline void accumulate_narrow(const float* weights, const float* factors, int heads,
                                         int count, int q, std::uint64_t keep, TileRows rows,
                                         Dim dim, float* outputs) {
  constexpr int most = 4 * Q <= accumulators ? 4 : 1;
  const auto n = static_cast<int>(dim);
  const Dim first = rows.first;
  for (; q + Q <= count; q += Q) {
    for (int h = 0, together = 0; h < heads; h += together) {
      const int i = h * count + q;
      rows.first = first + h * dim;
      together = heads - h >= most ? most : 1;
      const auto some = together == 1 ? accumulate_some<R, Q, 1> : accumulate_some<R, Q, most>;
      some(weights + i * key_tile, factors + i, count, keep, rows, 0, n, dim, outputs + i * dim);
    }
  }
  if constexpr (Q > 1) {
    rows.first = first;
    accumulate_narrow<R, Q / 2>(weights, factors, heads, count, q, keep, rows, dim, outputs);
  }
}
template <class R, int Q>
TENON_LEAF inline void accumulate_queries(const float* weights, const float* factors,
                                          std::uint64_t keep, const TileRows& rows,
                                          TileAhead& ahead, Dim dim, float* outputs) {
  constexpr int wide = Q >= 8 ? 2 : accumulators / Q < 4 ? accumulators / Q : 4;
  const Dim passes = dim / (16 * wide) + dim % (16 * wide) / 16;
  Ahead later(ahead, static_cast<int>(key_tile * passes));
  Dim d = 0;
  for (; d + 16 * wide <= dim; d += 16 * wide) {
    accumulate_block<R, Q, wide>(weights, factors, keep, rows, later, d, dim, outputs);
  }
  for (; d + 16 <= dim; d += 16) {
    accumulate_block<R, Q, 1>(weights, factors, keep, rows, later, d, dim, outputs);
  }
  if constexpr (R::any_width) {
    if (d < dim) {
      accumulate_some<R, Q, 1>(weights, factors, Q, keep, rows, d, static_cast<int>(dim - d), dim,
                               outputs);
    }
  }
}
template <class R>
TENON_LEAF inline void accumulate_head(const float* weights, const float* factors, int count,
                                       std::uint64_t keep, const TileRows& rows, TileAhead& ahead,
                                       Dim dim, float* outputs) {
  constexpr int block = accumulators >= 16 ? 4 : 2;
  int q = 0;
  if constexpr (accumulators >= 16) {
    for (; q + 8 <= count; q += 8) {
      accumulate_queries<R, 8>(weights + q * key_tile, factors + q, keep, rows, ahead, dim,
                               outputs + q * dim);
    }
  }
  for (; q + block <= count; q += block) {
    accumulate_queries<R, block>(weights + q * key_tile, factors + q, keep, rows, ahead, dim,
                                 outputs + q * dim);
  }
  if constexpr (block > 2) {
    if (q + 2 <= count) {
      accumulate_queries<R, 2>(weights + q * key_tile, factors + q, keep, rows, ahead, dim,
                               outputs + q * dim);
      q += 2;
    }
  }
  for (; q < count; ++q) {
    accumulate_queries<R, 1>(weights + q * key_tile, factors + q, keep, rows, ahead, dim,
                             outputs + q * dim);
  }
}

template <class R>
TENON_LEAF inline void accumulate(const float* weights, const float* factors, int heads, int count,
                                  std::uint64_t keep, const TileRows& rows, TileAhead& ahead,
                                  Dim dim, float* outputs) {
  if constexpr (R::any_width) {
    if (dim < 16) {
      accumulate_narrow<R, 4>(weights, factors, heads, count, 0, keep, rows, dim, outputs);
      return;
    }
  }
  TileRows from = rows;
  for (int h = 0; h < heads; ++h, from.first += dim) {
    accumulate_head<R>(weights + h * count * key_tile, factors + h * count, count, keep, from,
                       ahead, dim, outputs + h * count * dim);
  }
}
