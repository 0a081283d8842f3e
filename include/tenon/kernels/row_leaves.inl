// Leaves on single rows: norm, rotation, activations, conversions. Compiled once per instruction
// set by for_each_isa.inl; F32x16 and its operations are those of the surrounding namespace.

// e^x to 1 ulp for x in [-87.3, 88]: below it is exactly 0, above it saturates. Cephes-style
// reduction x = n ln 2 + r with |r| <= ln 2 / 2 and a degree 6 polynomial for e^r.
TENON_LEAF inline F32x16 exponential(F32x16 x) {
  const F32x16 in_range = larger(broadcast(-87.3f), smaller(broadcast(88.0f), x));
  const F32x16 magic = broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const F32x16 n = sub(fma(in_range, broadcast(1.44269504f), magic), magic);
  const F32x16 r = fma(n, broadcast(-1.42860677e-6f), fma(n, broadcast(-0.693145752f), in_range));
  F32x16 e = broadcast(1.0f / 720);
  e = fma(e, r, broadcast(1.0f / 120));
  e = fma(e, r, broadcast(1.0f / 24));
  e = fma(e, r, broadcast(1.0f / 6));
  e = fma(e, r, broadcast(0.5f));
  e = fma(e, r, broadcast(1.0f));
  e = fma(e, r, broadcast(1.0f));
  return zero_below(x, broadcast(-87.3f), mul(e, power_of_two(n)));
}

// y = x / sqrt(mean(x^2) + eps) * gain; x and y may be the same row.
TENON_LEAF inline void rms_norm(const float* x, const float* gain, Dim n, float eps, float* y) {
  F32x16 squares = zero();
  Dim i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 v = load(x + i);
    squares = fma(v, v, squares);
  }
  const int rest = static_cast<int>(n - i);
  const F32x16 last = load_first(x + i, rest);
  const float mean = sum(fma(last, last, squares)) / static_cast<float>(n);
  const F32x16 scale = broadcast(1.0f / std::sqrt(mean + eps));
  for (i = 0; i + 16 <= n; i += 16) {
    store(y + i, mul(mul(load(x + i), scale), load(gain + i)));
  }
  store_first(y + i, mul(mul(last, scale), load_first(gain + i, rest)), rest);
}

// y += x
TENON_LEAF inline void add_to(const float* x, Dim n, float* y) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, add(load(y + i), load(x + i)));
  const int rest = static_cast<int>(n - i);
  store_first(y + i, add(load_first(y + i, rest), load_first(x + i, rest)), rest);
}

// y += scale * x, one rounding
TENON_LEAF inline void add_scaled(const float* x, float scale, Dim n, float* y) {
  const F32x16 s = broadcast(scale);
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, fma(load(x + i), s, load(y + i)));
  const int rest = static_cast<int>(n - i);
  store_first(y + i, fma(load_first(x + i, rest), s, load_first(y + i, rest)), rest);
}

// cap tanh(x / cap), the tangent as 1 - 2 / (e^(2 x / cap) + 1): its error is absolute, some 1e-7
// cap.
TENON_LEAF inline F32x16 capped(F32x16 x, float cap) {
  const F32x16 one = broadcast(1.0f);
  const F32x16 e = exponential(mul(x, broadcast(2.0f / cap)));
  const F32x16 tangent = sub(one, div(broadcast(2.0f), add(e, one)));
  return mul(broadcast(cap), tangent);
}
TENON_LEAF inline void soft_cap(float* x, Dim n, float cap) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(x + i, capped(load(x + i), cap));
  const int rest = static_cast<int>(n - i);
  store_first(x + i, capped(load_first(x + i, rest), cap), rest);
}

// x sigmoid(z)
TENON_LEAF inline F32x16 times_sigmoid(F32x16 x, F32x16 z) {
  return div(x, add(broadcast(1.0f), exponential(sub(zero(), z))));
}

struct SiluPair {
  TENON_LEAF static F32x16 of(F32x16 gate, F32x16 up) { return mul(times_sigmoid(gate, gate), up); }
};
// The tanh form of GELU: x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3) is exactly
// x sigmoid(2 u).
struct GeluPair {
  TENON_LEAF static F32x16 of(F32x16 gate, F32x16 up) {
    const F32x16 cubic = fma(mul(mul(gate, gate), broadcast(0.044715f)), gate, gate);
    return mul(times_sigmoid(gate, mul(cubic, broadcast(1.59576912f))), up);
  }
};
// g sigmoid(1.702 g) (u + 1) with g at most 7 and u within -7 and 7.
struct ClampedSwigluPair {
  TENON_LEAF static F32x16 of(F32x16 gate, F32x16 up) {
    const F32x16 g = smaller(broadcast(7.0f), gate);
    const F32x16 u = larger(broadcast(-7.0f), smaller(broadcast(7.0f), up));
    return mul(times_sigmoid(g, mul(g, broadcast(1.702f))), add(u, broadcast(1.0f)));
  }
};
// gate = Pair(gate, up)
template <class Pair>
TENON_LEAF inline void gate_row(float* gate, const float* up, Dim n) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(gate + i, Pair::of(load(gate + i), load(up + i)));
  const int rest = static_cast<int>(n - i);
  store_first(gate + i, Pair::of(load_first(gate + i, rest), load_first(up + i, rest)), rest);
}

// Rotates `heads` vectors of head_dim by one position. cosines and sines [rope_dim] are spread to
// the layout's order, the sign of the sine included (see nn/rotary.hpp). Pairs (2i, 2i + 1):
TENON_LEAF inline void rotate_interleaved(float* x, Dim heads, Dim head_dim, Dim rope_dim,
                                          const float* cosines, const float* sines) {
  for (Dim h = 0; h < heads; ++h, x += head_dim) {
    for (Dim i = 0; i < rope_dim; i += 16) {
      const int n = static_cast<int>(rope_dim - i < 16 ? rope_dim - i : 16);
      const F32x16 v = load_first(x + i, n);
      const F32x16 crossed = mul(swap_pairs(v), load_first(sines + i, n));
      store_first(x + i, fma(v, load_first(cosines + i, n), crossed), n);
    }
  }
}
// Pairs (i, i + rope_dim / 2):
TENON_LEAF inline void rotate_halves(float* x, Dim heads, Dim head_dim, Dim rope_dim,
                                     const float* cosines, const float* sines) {
  const Dim half = rope_dim / 2;
  for (Dim h = 0; h < heads; ++h, x += head_dim) {
    for (Dim i = 0; i < half; i += 16) {
      const int n = static_cast<int>(half - i < 16 ? half - i : 16);
      const F32x16 a = load_first(x + i, n);
      const F32x16 b = load_first(x + half + i, n);
      const F32x16 cosine = load_first(cosines + i, n);
      store_first(x + i, fma(a, cosine, mul(b, load_first(sines + i, n))), n);
      store_first(x + half + i, fma(b, cosine, mul(a, load_first(sines + half + i, n))), n);
    }
  }
}

// Between float and half rows.
TENON_LEAF inline void narrow_to_half(const float* x, Dim n, std::uint16_t* y) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store_half(y + i, load(x + i));
  for (; i < n; ++i) y[i] = half_of_float(x[i]);
}
TENON_LEAF inline void widen_half(const std::uint16_t* x, Dim n, float* y) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load_half(x + i));
  for (; i < n; ++i) y[i] = float_of_half(x[i]);
}
TENON_LEAF inline void widen_bf16(const std::uint16_t* x, Dim n, float* y) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load_bf16(x + i));
  for (; i < n; ++i) y[i] = float_of_bf16(x[i]);
}
// y = scale * x
TENON_LEAF inline void widen_bytes(const std::int8_t* x, Dim n, float scale, float* y) {
  Dim i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, mul(load_bytes(x + i), broadcast(scale)));
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]) * scale;
}

inline constexpr RowOps row_ops{rms_norm,
                                add_to,
                                add_scaled,
                                soft_cap,
                                gate_row<SiluPair>,
                                gate_row<GeluPair>,
                                gate_row<ClampedSwigluPair>,
                                rotate_interleaved,
                                rotate_halves,
                                narrow_to_half,
                                widen_half,
                                widen_bytes,
                                widen_bf16};
