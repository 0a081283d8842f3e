// Leaves of attention over one tile of `key_tile` keys. Compiled once per instruction set by
// for_each_isa.inl. Orders are fixed: a score is a fold over the head's values in ascending order,
// the denominator a sum over 16 lanes (key mod 16), the output a fold over keys in ascending order.

// How each element format is read: sixteen values of a row from value d on, d a multiple of 16
// unless the format has values of any width; `line` values lie on one cache line or a little more.
struct F32Rows {
  static constexpr bool any_width = true;
  static constexpr Dim line = 16;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d * 4; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    return load(reinterpret_cast<const float*>(row) + d);
  }
  TENON_LEAF static F32x16 load_some(const std::byte* row, Dim d, int n) {
    return load_first(reinterpret_cast<const float*>(row) + d, n);
  }
};
struct F16Rows {
  static constexpr bool any_width = false;
  static constexpr Dim line = 32;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d * 2; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    return load_half(reinterpret_cast<const std::uint16_t*>(row) + d);
  }
};
struct Bf16Rows {
  static constexpr bool any_width = false;
  static constexpr Dim line = 32;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d * 2; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(row) + d);
  }
};
// Blocks of 32: a half, the scale, and 32 bytes.
struct Q8_0Rows {
  static constexpr bool any_width = false;
  static constexpr Dim line = 32;
  TENON_LEAF static const std::byte* at(const std::byte* row, Dim d) { return row + d / 32 * 34; }
  TENON_LEAF static F32x16 load16(const std::byte* row, Dim d) {
    const std::byte* block = at(row, d);
    const auto* bytes = reinterpret_cast<const std::int8_t*>(block) + 2 + d % 32;
    return mul(load_bytes(bytes), broadcast_half(block));
  }
};
template <class R>
TENON_LEAF inline void fetch(const std::byte* row, Dim d) {
  if (d % R::line == 0) __builtin_prefetch(R::at(row, d), 0, 3);
}

// keys[d][row] = rows[row][d], 16 rows by 16 values at a time.
template <class R>
TENON_LEAF inline void transpose_keys(const TileRows& rows, const TileRows& ahead, int low,
                                      int high, Dim dim, float* keys) {
  for (int group = low / 32 * 32; group < high; group += 16) {
    const std::byte* from = rows.group[group / 16];
    const std::byte* later = ahead.group[group / 16];
    const int begin = low > group ? low - group : 0;
    const int end = high < group + 16 ? high - group : 16;
    Dim d = 0;
    for (; d + 16 <= dim; d += 16) {
      F32x16 block[16];
      if (begin == 0 && end == 16) {
        TENON_UNROLL
        for (int i = 0; i < 16; ++i) {
          block[i] = R::load16(from + i * rows.stride, rows.first + d);
          fetch<R>(later + i * ahead.stride, ahead.first + d);
        }
      } else {
        for (int i = 0; i < 16; ++i) {
          block[i] =
              i >= begin && i < end ? R::load16(from + i * rows.stride, rows.first + d) : zero();
        }
      }
      transpose(block);
      float* to = keys + d * key_tile + group;
      TENON_UNROLL
      for (int i = 0; i < 16; ++i) store(to + i * key_tile, block[i]);
    }
    if constexpr (R::any_width) {
      const auto rest = static_cast<int>(dim - d);
      if (rest > 0) {
        F32x16 block[16];
        for (int i = 0; i < 16; ++i) {
          block[i] = i >= begin && i < end
                         ? R::load_some(from + i * rows.stride, rows.first + d, rest)
                         : zero();
        }
        transpose(block);
        for (int i = 0; i < rest; ++i) store(keys + (d + i) * key_tile + group, block[i]);
      }
    }
    if (group + 16 >= high && group % 32 == 0) {
      for (d = 0; d < dim; ++d) store(keys + d * key_tile + group + 16, zero());
    }
  }
}

// scores[q][row] = queries[q] . key[row]; two key vectors by Q queries in registers: per value of
// the head 2 loads, Q broadcasts and 2 Q fused multiply-adds.
template <int Q>
TENON_LEAF inline void score_block(const float* queries, const float* keys, int low, int high,
                                   Dim dim, float* scores) {
  for (int group = low / 32 * 32; group < high; group += 32) {
    F32x16 acc[Q][2];
    TENON_UNROLL
    for (int q = 0; q < Q; ++q) acc[q][0] = acc[q][1] = zero();
    const float* key = keys + group;
    for (Dim d = 0; d < dim; ++d, key += key_tile) {
      const F32x16 k0 = load(key);
      const F32x16 k1 = load(key + 16);
      TENON_UNROLL
      for (int q = 0; q < Q; ++q) {
        const F32x16 value = broadcast(queries[q * dim + d]);
        acc[q][0] = fma(value, k0, acc[q][0]);
        acc[q][1] = fma(value, k1, acc[q][1]);
      }
    }
    TENON_UNROLL
    for (int q = 0; q < Q; ++q) {
      store(scores + q * key_tile + group, acc[q][0]);
      store(scores + q * key_tile + group + 16, acc[q][1]);
    }
  }
}
TENON_LEAF inline void score(const float* queries, int count, const float* keys, int low, int high,
                             Dim dim, float* scores) {
  constexpr int block = accumulators >= 16 ? 8 : 2;
  int q = 0;
  for (; q + block <= count; q += block) {
    score_block<block>(queries + q * dim, keys, low, high, dim, scores + q * key_tile);
  }
  if (block > 2) {
    if (q + 4 <= count) {
      score_block<4>(queries + q * dim, keys, low, high, dim, scores + q * key_tile);
      q += 4;
    }
    if (q + 2 <= count) {
      score_block<2>(queries + q * dim, keys, low, high, dim, scores + q * key_tile);
      q += 2;
    }
  }
  if (q < count) {
    score_block<1>(queries + q * dim, keys, low, high, dim, scores + q * key_tile);
  }
}

// Folds the kept scores of a tile into a running maximum and denominator. Scores become weights
// e^(score - maximum), 0 where not kept; returns the factor for what was accumulated before.
TENON_LEAF inline float soften(float* scores, std::uint64_t keep, float* maximum,
                               float* denominator) {
  const F32x16 nothing = broadcast(-std::numeric_limits<float>::infinity());
  F32x16 kept[4];
  F32x16 top = nothing;
  for (int g = 0; g < 4; ++g) {
    const auto bits = static_cast<unsigned>(keep >> (16 * g) & 0xffffu);
    kept[g] = bits == 0 ? nothing : select(bits, load(scores + 16 * g), nothing);
    top = larger(top, kept[g]);
  }
  const float tile_maximum = largest(top);
  const float raised = *maximum > tile_maximum ? *maximum : tile_maximum;
  // With no score above minus infinity yet, any finite shift gives weights of zero, and a NaN
  // passes.
  const float shift = raised == -std::numeric_limits<float>::infinity() ? 0.0f : raised;
  F32x16 total = zero();
  for (int g = 0; g < 4; ++g) {
    const bool used = (keep >> (16 * g) & 0xffffu) != 0;
    const F32x16 weight = used ? exponential(sub(kept[g], broadcast(shift))) : zero();
    store(scores + 16 * g, weight);
    total = add(total, weight);
  }
  alignas(64) float factor[16];
  store(factor, exponential(broadcast(*maximum - shift)));
  *maximum = raised;
  *denominator = std::fma(*denominator, factor[0], sum(total));
  return factor[0];
}

// output[q][C vectors] = output * factor[q] + sum over kept rows of weight * value.
template <class R, int Q, int C>
TENON_LEAF inline void accumulate_block(const float* weights, const float* factors,
                                        std::uint64_t keep, const TileRows& rows,
                                        const TileRows& ahead, Dim d, Dim dim, float* outputs) {
  F32x16 acc[Q][C];
  TENON_UNROLL
  for (int q = 0; q < Q; ++q) {
    TENON_UNROLL
    for (int c = 0; c < C; ++c) {
      acc[q][c] = mul(load(outputs + q * dim + d + 16 * c), broadcast(factors[q]));
    }
  }
  for (int group = 0; group < 4; ++group, weights += 16) {
    const std::byte* from = rows.group[group];
    const std::byte* later = ahead.group[group];
    for (auto bits = static_cast<unsigned>(keep >> (16 * group) & 0xffffu); bits != 0;
         bits &= bits - 1) {
      const int row = __builtin_ctz(bits);
      const std::byte* values = from + row * rows.stride;
      TENON_UNROLL
      for (int c = 0; c < C; ++c) {
        const F32x16 value = R::load16(values, rows.first + d + 16 * c);
        fetch<R>(later + row * ahead.stride, ahead.first + d + 16 * c);
        TENON_UNROLL
        for (int q = 0; q < Q; ++q) {
          acc[q][c] = fma(broadcast(weights[q * key_tile + row]), value, acc[q][c]);
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
// The same for the last `n` < 16 values of a head.
template <class R, int Q>
TENON_LEAF inline void accumulate_rest(const float* weights, const float* factors,
                                       std::uint64_t keep, const TileRows& rows, Dim d, int n,
                                       Dim dim, float* outputs) {
  F32x16 acc[Q];
  for (int q = 0; q < Q; ++q) {
    acc[q] = mul(load_first(outputs + q * dim + d, n), broadcast(factors[q]));
  }
  for (; keep != 0; keep &= keep - 1) {
    const int row = __builtin_ctzll(keep);
    const std::byte* values = rows.group[row / 16] + row % 16 * rows.stride;
    const F32x16 value = R::load_some(values, rows.first + d, n);
    for (int q = 0; q < Q; ++q) {
      acc[q] = fma(broadcast(weights[q * key_tile + row]), value, acc[q]);
    }
  }
  for (int q = 0; q < Q; ++q) store_first(outputs + q * dim + d, acc[q], n);
}
template <class R, int Q>
TENON_LEAF inline void accumulate_queries(const float* weights, const float* factors,
                                          std::uint64_t keep, const TileRows& rows,
                                          const TileRows& ahead, Dim dim, float* outputs) {
  constexpr int wide = accumulators / Q < 4 ? accumulators / Q : 4;
  Dim d = 0;
  for (; d + 16 * wide <= dim; d += 16 * wide) {
    accumulate_block<R, Q, wide>(weights, factors, keep, rows, ahead, d, dim, outputs);
  }
  for (; d + 16 <= dim; d += 16) {
    accumulate_block<R, Q, 1>(weights, factors, keep, rows, ahead, d, dim, outputs);
  }
  if constexpr (R::any_width) {
    if (d < dim) {
      accumulate_rest<R, Q>(weights, factors, keep, rows, d, static_cast<int>(dim - d), dim,
                            outputs);
    }
  }
}
template <class R>
TENON_LEAF inline void accumulate(const float* weights, const float* factors, int count,
                                  std::uint64_t keep, const TileRows& rows, const TileRows& ahead,
                                  Dim dim, float* outputs) {
  constexpr int block = accumulators >= 16 ? 4 : 2;
  int q = 0;
  for (; q + block <= count; q += block) {
    accumulate_queries<R, block>(weights + q * key_tile, factors + q, keep, rows,
                                 q == 0 ? ahead : rows, dim, outputs + q * dim);
  }
  for (; q < count; ++q) {
    accumulate_queries<R, 1>(weights + q * key_tile, factors + q, keep, rows, q == 0 ? ahead : rows,
                             dim, outputs + q * dim);
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
TENON_LEAF inline float exponential_of(float x) {
  alignas(64) float lanes[16];
  store(lanes, exponential(broadcast(x)));
  return lanes[0];
}

template <class R>
inline constexpr TileOps tile_ops{transpose_keys<R>, accumulate<R>};

inline constexpr AttentionOps attention_ops{
    {tile_ops<F32Rows>, tile_ops<F16Rows>, tile_ops<Bf16Rows>, tile_ops<Q8_0Rows>},
    score,
    soften,
    merge_outputs,
    divide,
    exponential_of};
