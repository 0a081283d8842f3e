// Leaves of attention over one tile of `key_tile` keys, on the rows of attention_row_leaves.inl.
// Compiled once per instruction set by for_each_isa.inl. Orders are fixed: a score is a fold over
// the head's values in ascending order, the denominator a sum over 16 lanes (key mod 16).

// keys[d][row] = rows[row][d] for 16 rows and whole sixteens of values.
template <class R>
TENON_LEAF inline void transpose_whole(const std::byte* rows, Dim stride, Dim first, Dim dim,
                                       Ahead& later, typename R::Key* keys) {
  for (Dim d = 0; d + 16 <= dim; d += 16) {
    later.step();
    if constexpr (sizeof(typename R::Key) == 2) {
      transpose_words(R::at(rows, first + d), stride, keys + d * key_tile, key_tile);
    } else {
      F32x16 block[16];
      TENON_UNROLL
      for (int i = 0; i < 16; ++i) block[i] = R::load16(rows + i * stride, first + d);
      transpose(block);
      TENON_UNROLL
      for (int i = 0; i < 16; ++i) store(keys + (d + i) * key_tile, block[i]);
    }
  }
}
// The same of n <= 16 values from value d on, of which only rows [begin, end) are there.
template <class R>
TENON_LEAF inline void transpose_some(const std::byte* rows, Dim stride, Dim d, int n, int begin,
                                      int end, typename R::Key* keys) {
  if constexpr (sizeof(typename R::Key) == 2) {
    alignas(64) std::byte part[16][32] = {};
    for (int i = begin; i < end; ++i) std::memcpy(part[i], R::at(rows, d) + i * stride, 32);
    transpose_words(part[0], 32, keys, key_tile);
  } else {
    F32x16 block[16];
    for (int i = 0; i < 16; ++i) {
      if (i < begin || i >= end) {
        block[i] = zero();
      } else if constexpr (R::any_width) {
        block[i] = R::load_some(rows + i * stride, d, n);
      } else {
        block[i] = R::load16(rows + i * stride, d);
      }
    }
    transpose(block);
    for (int i = 0; i < n; ++i) store(keys + i * key_tile, block[i]);
  }
}
template <class R>
TENON_LEAF inline void transpose_keys(const TileRows& rows, int low, int high, TileAhead& ahead,
                                      Dim dim, void* to) {
  auto* keys = static_cast<typename R::Key*>(to);
  Ahead later(ahead, static_cast<int>(key_tile / 16 * (dim / 16)));
  for (int group = low / 32 * 32; group < high; group += 16) {
    const int begin = low > group ? low - group : 0;
    const int end = high < group + 16 ? high - group : 16;
    const std::byte* from = rows.group[group / 16];
    Dim d = 0;
    if (begin == 0 && end == 16) {
      transpose_whole<R>(from, rows.stride, rows.first, dim, later, keys + group);
      d = dim / 16 * 16;
    }
    for (; d < dim; d += 16) {
      const int n = static_cast<int>(dim - d < 16 ? dim - d : 16);
      transpose_some<R>(from, rows.stride, rows.first + d, n, begin, end,
                        keys + d * key_tile + group);
    }
    if (group + 16 >= high && group % 32 == 0) {
      for (d = 0; d < dim; ++d) {
        std::memset(keys + d * key_tile + group + 16, 0, 16 * sizeof(typename R::Key));
      }
    }
  }
}

// scores[q][row] = queries[q] . key[row] for 16 K rows from `group` on: per value of the head K
// loads, Q broadcasts and K Q fused multiply-adds.
template <class R, int Q, int K>
TENON_LEAF inline void score_block(const float* queries, const typename R::Key* keys, int group,
                                   TileAhead& ahead, Dim dim, float* scores) {
  F32x16 acc[Q][K];
  TENON_UNROLL
  for (int q = 0; q < Q; ++q) {
    TENON_UNROLL
    for (int k = 0; k < K; ++k) acc[q][k] = zero();
  }
  keys += group;
  Ahead later(ahead, static_cast<int>(dim));
  for (Dim d = 0; d < dim; ++d, keys += key_tile) {
    later.step();
    F32x16 key[K];
    TENON_UNROLL
    for (int k = 0; k < K; ++k) key[k] = R::load_keys(keys + 16 * k);
    TENON_UNROLL
    for (int q = 0; q < Q; ++q) {
      const F32x16 value = broadcast(queries[q * dim + d]);
      TENON_UNROLL
      for (int k = 0; k < K; ++k) acc[q][k] = fma(value, key[k], acc[q][k]);
    }
  }
  TENON_UNROLL
  for (int q = 0; q < Q; ++q) {
    TENON_UNROLL
    for (int k = 0; k < K; ++k) store(scores + q * key_tile + group + 16 * k, acc[q][k]);
  }
}
// All groups of 32 rows that have one of [low, high).
template <class R, int Q>
TENON_LEAF inline void score_queries(const float* queries, const void* transposed, int low,
                                     int high, TileAhead& ahead, Dim dim, float* scores) {
  const auto* keys = static_cast<const typename R::Key*>(transposed);
  if constexpr (4 * Q <= accumulators) {
    if (low < 32 && high > 32) {
      score_block<R, Q, 4>(queries, keys, 0, ahead, dim, scores);
      return;
    }
  }
  for (int group = low / 32 * 32; group < high; group += 32) {
    score_block<R, Q, 2>(queries, keys, group, ahead, dim, scores);
  }
}
template <class R>
TENON_LEAF inline void score(const float* queries, int count, const void* keys, int low, int high,
                             TileAhead& ahead, Dim dim, float* scores) {
  constexpr int block = accumulators >= 16 ? 8 : 2;
  int q = 0;
  for (; q + block <= count; q += block) {
    score_queries<R, block>(queries + q * dim, keys, low, high, ahead, dim, scores + q * key_tile);
  }
  if constexpr (block > 4) {
    if (q + 4 <= count) {
      score_queries<R, 4>(queries + q * dim, keys, low, high, ahead, dim, scores + q * key_tile);
      q += 4;
    }
    if (q + 2 <= count) {
      score_queries<R, 2>(queries + q * dim, keys, low, high, ahead, dim, scores + q * key_tile);
      q += 2;
    }
  }
  for (; q < count; ++q) {
    score_queries<R, 1>(queries + q * dim, keys, low, high, ahead, dim, scores + q * key_tile);
  }
}

TENON_LEAF inline float exponential_of(float x) {
  alignas(64) float lanes[16];
  store(lanes, exponential(broadcast(x)));
  return lanes[0];
}

// Sixteen scores, minus infinity where not kept.
TENON_LEAF inline F32x16 kept_scores(const float* scores, std::uint64_t keep, int group) {
  const F32x16 nothing = broadcast(-std::numeric_limits<float>::infinity());
  const auto bits = static_cast<unsigned>(keep >> (16 * group) & 0xffffu);
  return bits == 0 ? nothing : select(bits, load(scores + 16 * group), nothing);
}
// Folds the kept scores of a tile into running maxima and denominators. Scores become weights
// e^(score - maximum), 0 where not kept; factors are for what was accumulated before. Maxima come
// first for all queries, so that one query's do not wait for another's exponentials.
TENON_LEAF inline void soften(float* scores, int count, std::uint64_t keep, TileAhead& ahead,
                              float* maxima, float* denominators, float* factors) {
  Ahead later(ahead, 2 * count);
  for (int q = 0; q < count; ++q) {
    later.step();
    const float* own = scores + q * key_tile;
    F32x16 top = kept_scores(own, keep, 0);
    TENON_UNROLL
    for (int g = 1; g < 4; ++g) top = larger(top, kept_scores(own, keep, g));
    const float tile_maximum = largest(top);
    factors[q] = maxima[q];
    maxima[q] = maxima[q] > tile_maximum ? maxima[q] : tile_maximum;
  }
  for (int q = 0; q < count; ++q) {
    later.step();
    float* own = scores + q * key_tile;
    // With no score above minus infinity yet, any finite shift gives weights of zero, and a NaN
    // passes.
    const bool none = maxima[q] == -std::numeric_limits<float>::infinity();
    const float shift = none ? 0.0f : maxima[q];
    F32x16 total = zero();
    TENON_UNROLL
    for (int g = 0; g < 4; ++g) {
      const bool used = (keep >> (16 * g) & 0xffffu) != 0;
      const F32x16 weight =
          used ? exponential(sub(kept_scores(own, keep, g), broadcast(shift))) : zero();
      store(own + 16 * g, weight);
      total = add(total, weight);
    }
    // e^0 is exactly 1, and most tiles do not raise the maximum.
    factors[q] = factors[q] == shift ? 1.0f : exponential_of(factors[q] - shift);
    denominators[q] = std::fma(denominators[q], factors[q], sum(total));
  }
}

// into = into * a + from * b, the merge of two softmax states whose factors are known.
TENON_LEAF inline void merge_outputs(float* into, float a, const float* from, float b, Dim dim) {
  for (Dim d = 0; d < dim; d += 16) {
    const int n = static_cast<int>(dim - d < 16 ? dim - d : 16);
    const F32x16 other = mul(load_first(from + d, n), broadcast(b));
    store_first(into + d, fma(load_first(into + d, n), broadcast(a), other), n);
  }
}
// y = x / divisor
TENON_LEAF inline void divide(const float* x, float divisor, Dim dim, float* y) {
  for (Dim d = 0; d < dim; d += 16) {
    const int n = static_cast<int>(dim - d < 16 ? dim - d : 16);
    store_first(y + d, div(load_first(x + d, n), broadcast(divisor)), n);
  }
}

template <class R>
inline constexpr TileOps tile_ops{transpose_keys<R>, score<R>, accumulate<R>};

inline constexpr AttentionOps attention_ops{
    {tile_ops<F32Rows>, tile_ops<F16Rows>, tile_ops<Bf16Rows>, tile_ops<Q8Rows>},
    soften,
    merge_outputs,
    divide,
    exponential_of};
