// Leaves of attention over one tile of `key_tile` keys. Compiled once per instruction set by
// for_each_isa.inl. Orders are fixed: a score is a fold over the head's values in ascending order,
// the denominator a sum over 16 lanes (key mod 16), the output a fold over keys in ascending order.

// keys[d][row] = rows[row][d] for rows [low, high) of the tile; lanes of other rows in the same
// groups of 32 become zero, groups without a row are left alone. `rows` points at row 0.
TENON_LEAF inline void transpose_keys(const float* rows, Dim stride, int low, int high, Dim dim,
                                      float* keys) {
  for (int group = low / 32 * 32; group < high; group += 16) {
    const bool whole = group >= low && group + 16 <= high;
    for (Dim d = 0; d < dim; d += 8) {
      const int columns = static_cast<int>(dim - d < 8 ? dim - d : 8);
      const float* from = rows + group * stride + d;
      Dim step = stride;
      alignas(32) float part[16][8];
      if (!whole || columns < 8) {  // only what is there, in a block of zeros
        std::memset(part, 0, sizeof part);
        for (int i = 0; i < 16; ++i) {
          const int row = group + i;
          if (row < low || row >= high) continue;
          std::memcpy(part[i], from + i * stride,
                      static_cast<std::size_t>(columns) * sizeof(float));
        }
        from = part[0];
        step = 8;
      }
      F32x16 block[8];
      load_transposed(from, step, block);
      float* to = keys + d * key_tile + group;
      if (columns == 8) {
        TENON_UNROLL
        for (int i = 0; i < 8; ++i) store(to + i * key_tile, block[i]);
      } else {
        for (int i = 0; i < columns; ++i) store(to + i * key_tile, block[i]);
      }
    }
    if (group + 16 >= high && group % 32 == 0) {
      for (Dim d = 0; d < dim; ++d) store(keys + d * key_tile + group + 16, zero());
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
    for (int q = 0; q < Q; ++q) acc[q][0] = acc[q][1] = zero();
    const float* key = keys + group;
    for (Dim d = 0; d < dim; ++d, key += key_tile) {
      const F32x16 k0 = load(key);
      const F32x16 k1 = load(key + 16);
      for (int q = 0; q < Q; ++q) {
        const F32x16 value = broadcast(queries[q * dim + d]);
        acc[q][0] = fma(value, k0, acc[q][0]);
        acc[q][1] = fma(value, k1, acc[q][1]);
      }
    }
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
    for (; q + 2 <= count; q += 2) {
      score_block<2>(queries + q * dim, keys, low, high, dim, scores + q * key_tile);
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
template <int Q, int C>
TENON_LEAF inline void accumulate_block(const float* weights, const float* factors,
                                        std::uint64_t keep, const float* values, Dim stride,
                                        Dim dim, float* outputs) {
  F32x16 acc[Q][C];
  for (int q = 0; q < Q; ++q) {
    for (int c = 0; c < C; ++c) {
      acc[q][c] = mul(load(outputs + q * dim + 16 * c), broadcast(factors[q]));
    }
  }
  for (; keep != 0; keep &= keep - 1) {
    const int row = __builtin_ctzll(keep);
    for (int c = 0; c < C; ++c) {
      const F32x16 value = load(values + row * stride + 16 * c);
      for (int q = 0; q < Q; ++q) {
        acc[q][c] = fma(broadcast(weights[q * key_tile + row]), value, acc[q][c]);
      }
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int c = 0; c < C; ++c) store(outputs + q * dim + 16 * c, acc[q][c]);
  }
}
// The same for the last `n` < 16 values of a head.
template <int Q>
TENON_LEAF inline void accumulate_rest(const float* weights, const float* factors,
                                       std::uint64_t keep, const float* values, Dim stride, int n,
                                       Dim dim, float* outputs) {
  F32x16 acc[Q];
  for (int q = 0; q < Q; ++q) acc[q] = mul(load_first(outputs + q * dim, n), broadcast(factors[q]));
  for (; keep != 0; keep &= keep - 1) {
    const int row = __builtin_ctzll(keep);
    const F32x16 value = load_first(values + row * stride, n);
    for (int q = 0; q < Q; ++q) {
      acc[q] = fma(broadcast(weights[q * key_tile + row]), value, acc[q]);
    }
  }
  for (int q = 0; q < Q; ++q) store_first(outputs + q * dim, acc[q], n);
}
template <int Q>
TENON_LEAF inline void accumulate_queries(const float* weights, const float* factors,
                                          std::uint64_t keep, const float* values, Dim stride,
                                          Dim dim, float* outputs) {
  constexpr int wide = accumulators / Q < 4 ? accumulators / Q : 4;
  Dim d = 0;
  for (; d + 16 * wide <= dim; d += 16 * wide) {
    accumulate_block<Q, wide>(weights, factors, keep, values + d, stride, dim, outputs + d);
  }
  for (; d + 16 <= dim; d += 16) {
    accumulate_block<Q, 1>(weights, factors, keep, values + d, stride, dim, outputs + d);
  }
  if (d < dim) {
    accumulate_rest<Q>(weights, factors, keep, values + d, stride, static_cast<int>(dim - d), dim,
                       outputs + d);
  }
}
TENON_LEAF inline void accumulate(const float* weights, const float* factors, int count,
                                  std::uint64_t keep, const float* values, Dim stride, Dim dim,
                                  float* outputs) {
  constexpr int block = accumulators >= 16 ? 4 : 2;
  int q = 0;
  for (; q + block <= count; q += block) {
    accumulate_queries<block>(weights + q * key_tile, factors + q, keep, values, stride, dim,
                              outputs + q * dim);
  }
  if (block > 2 && q + 2 <= count) {
    accumulate_queries<2>(weights + q * key_tile, factors + q, keep, values, stride, dim,
                          outputs + q * dim);
    q += 2;
  }
  if (q < count) {
    accumulate_queries<1>(weights + q * key_tile, factors + q, keep, values, stride, dim,
                          outputs + q * dim);
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

inline constexpr AttentionOps attention_ops{transpose_keys, score,  soften,        accumulate,
                                            merge_outputs,  divide, exponential_of};
