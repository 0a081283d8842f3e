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

// Scales arrive in lines of their own: bytes of some units' scales, one line or more, and the
// units.
template <class F>
inline constexpr Dim scale_bytes_a_unit =
    TileLayout<F>::scale_bytes* TileLayout<F>::unit_bytes / TileLayout<F>::value_bytes;
template <class F>
inline constexpr Dim scale_units = (std::max)(Dim{1}, 64 / scale_bytes_a_unit<F>);

// a + b * c modulo 2^32.
TENON_LEAF inline __attribute__((always_inline)) std::int32_t wrapping(std::int32_t a,
                                                                       std::int32_t b,
                                                                       std::int32_t c) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) +
                                   static_cast<std::uint32_t>(b) * static_cast<std::uint32_t>(c));
}
// The sum of the activations that share scale `s` of a unit. What lies behind a group may be
// anything (see streamed_tile), so differences wrap around.
template <BlockKind Kind>
TENON_LEAF inline __attribute__((always_inline)) std::int32_t sum_of(const QuantizedGroup& x,
                                                                     Dim at, int s) {
  if constexpr (Kind.scales == 1) return x.sums[at];
  return s == 0 ? x.heads[at] : wrapping(x.sums[at], -1, x.heads[at]);
}

// Sums wait at `memory`: without this, compilers that see a whole loop also keep them in registers,
// and then put the integer sums, which every instruction needs, on the stack.
TENON_LEAF inline __attribute__((always_inline)) void stay_in_memory(const float* memory) {
  __asm__ volatile("" : : "r"(memory) : "memory");
}

// sums [N][R][16] = x times R row tiles. Where x has fewer than N tokens, the other sums are of
// what lies behind it, which QuantizedRows::slack allows: tokens at constant distances are worth
// it. Per unit: 8 vectors of 64 weights per row tile, 8 broadcasts per token, 8 R N dot
// instructions, 2 (with minima 3) fma per scale and sum. Integer sums start at integral_bits, and
// fma(integral + dot, d_w, -integral d_w) rounds dot * d_w once; a scale that is not finite makes
// the row NaN. MXFP4 has finite scales so huge that integral d_w is not: there integral goes first.
template <class F, int R, int N>
TENON_LEAF inline void streamed_tile(const LinearTile* tiles, int count, const QuantizedGroup& x,
                                     Dim units, float* sums) {
  static_assert(N - 1 <= QuantizedRows::slack);
  constexpr BlockKind kind = TileLayout<F>::kind;
  constexpr int vectors = 8 / kind.scales;
  constexpr bool huge_scales = TileLayout<F>::code == QuantCode::e2m1;
  constexpr bool in_registers = R * N <= 8;  // beside as many integer sums
  const std::byte* values[R];
  const std::byte* scales[R];
  for (int r = 0; r < R; ++r) {  // tiles missing from the group repeat the first
    values[r] = tiles[r < count ? r : 0].weights.values;
    scales[r] = tiles[r < count ? r : 0].weights.scales;
  }
  F32x16 acc[in_registers ? N * R : 1];
  if constexpr (in_registers) {
    TENON_UNROLL
    for (int i = 0; i < N * R; ++i) acc[i] = zero();
  } else {
    for (int i = 0; i < N * R; ++i) store(sums + 16 * i, zero());
  }
  for (Dim u = 0; u < units; ++u) {
    if constexpr (!in_registers) stay_in_memory(sums);
    if (u % scale_units<F> == 0) {
      TENON_UNROLL
      for (int r = 0; r < R; ++r) fetch(scales[r], u * scale_bytes_a_unit<F> + stream_ahead / 4);
    }
    TENON_UNROLL
    for (int s = 0; s < kind.scales; ++s) {
      I32x16 dot[N * R];
      TENON_UNROLL
      for (int n = 0; n < N; ++n) {
        const std::int32_t sum = sum_of<kind>(x, u * x.count + n, s);
        const std::int32_t start = wrapping(integral_bits, -kept_offset<F>, sum);
        TENON_UNROLL
        for (int r = 0; r < R; ++r) dot[n * R + r] = broadcast_int(start);
      }
      TENON_UNROLL
      for (int v = 0; v < vectors; ++v) {
        const int j = v % 4, half = kind.scales == 2 ? s : v / 4;
        Bytes64 w[R];
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          constexpr Dim bytes = TileLayout<F>::unit_bytes;
          const Dim ahead = 64 * (4 * half + j);
          if (ahead < bytes) fetch(values[r], u * bytes + ahead + stream_ahead);
          w[r] = quants_at<F>(values[r], u, j, half);
        }
        TENON_UNROLL
        for (int n = 0; n < N; ++n) {
          const std::int8_t* xs = x.values + (u * x.count + n) * 32;
          const Bytes64 four = broadcast_four(xs + 16 * half + 4 * j);
          TENON_UNROLL
          for (int r = 0; r < R; ++r) {
            I32x16& to = dot[n * R + r];
            to = kind.wide ? ByteDot::bytes(to, w[r], four) : ByteDot::narrow(to, w[r], four);
          }
        }
      }
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const F32x16 d = scales_at<F>(scales[r], u, s);
        const F32x16 back = mul(d, broadcast(-integral));
        F32x16 minimum;
        if constexpr (kind.minima) minimum = minima_at<F>(scales[r], u, s);
        TENON_UNROLL
        for (int n = 0; n < N; ++n) {
          const Dim at = u * x.count + n;
          const int i = n * R + r;
          F32x16 to = in_registers ? acc[in_registers ? i : 0] : load(sums + 16 * i);
          const F32x16 product = huge_scales
                                     ? mul(sub(float_of_bits(dot[i]), broadcast(integral)), d)
                                     : fma(float_of_bits(dot[i]), d, back);
          to = fma(product, broadcast(x.scales[at]), to);
          if constexpr (kind.minima) {
            const float weight = x.scales[at] * static_cast<float>(sum_of<kind>(x, at, s));
            to = fma(minimum, broadcast(weight), to);
          }
          if constexpr (in_registers) {
            acc[i] = to;
          } else {
            store(sums + 16 * i, to);
          }
        }
      }
    }
  }
  if constexpr (in_registers) {
    TENON_UNROLL
    for (int i = 0; i < N * R; ++i) store(sums + 16 * i, acc[i]);
  }
}
template <class F, int R, int N>
TENON_LEAF inline void streamed_group(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (R > 1) {
    if (count <= R / 2) return streamed_group<F, R / 2, N>(tiles, count, rows);
  }
  alignas(64) float sums[N * R * 16];
  for (Dim t = 0; t < rows.tokens; t += N) {
    const Dim start = t / QuantizedGroup::most * QuantizedGroup::most;
    const Dim together = (std::min)(QuantizedGroup::most, rows.tokens - start);
    const QuantizedGroup x = rows.quantized.group(start, together).from_token(t - start);
    const int some = static_cast<int>((std::min)(Dim{N}, rows.tokens - t));
    streamed_tile<F, R, N>(tiles, count, x, rows.quantized.blocks, sums);
    for (int n = 0; n < some; ++n) {
      for (int r = 0; r < count; ++r) finish(tiles[r], t + n, sums + (n * R + r) * 16);
    }
  }
}
// All tokens times all tiles of a call, N tokens and R tiles at a time.
template <class F, int R, int N>
TENON_LEAF inline void streamed_groups(const LinearTile* tiles, int count, const LinearRows& rows) {
  for (; count > 0; tiles += R, count -= R) {
    streamed_group<F, R, N>(tiles, (std::min)(count, R), rows);
  }
}

template <class F>
TENON_LEAF inline void linear_int8(const LinearTile* tiles, int count, const LinearRows& rows) {
  if constexpr (ByteDot::four > 0) {
    if (rows.tokens > 4 && ByteDot::eight > 0) {
      return streamed_groups<F, (std::max)(ByteDot::eight, 1), 8>(tiles, count, rows);
    }
    if (rows.tokens > 1) return streamed_groups<F, ByteDot::four, 4>(tiles, count, rows);
  }
  streamed_groups<F, ByteDot::one, 1>(tiles, count, rows);
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
