// Quantizing a row of activations to int8. Compiled once per instruction set by for_each_isa.inl.

// Per 32 values: a = max |x|, d = a / 127, q = round-to-nearest-even(x * (127 / a)), so |q| <= 127.
// A block below 2^-96 everywhere counts as zero (127 / a would overflow): d = 0, q = 0. A block
// that holds a NaN or an infinity gets d = NaN and q = 0, which makes every output it reaches a
// NaN.
TENON_LEAF inline void quantize_row(const float* x, Dim in, const QuantizedGroup& to, Dim token) {
  std::int8_t* values = to.values + token * 32;
  for (Dim at = token; in > 0; in -= 32, x += 32, values += to.count * 32, at += to.count) {
    F32x16 a, b;
    if (in >= 32) {
      a = load(x);
      b = load(x + 16);
    } else {
      a = load_first(x, static_cast<int>(in < 16 ? in : 16));
      b = in > 16 ? load_first(x + 16, static_cast<int>(in - 16)) : zero();
    }
    const float peak = largest(larger(abs(a), abs(b)));
    const bool finite = all_finite(a) && all_finite(b);
    if (!(finite && peak >= 0x1p-96f)) {
      to.scales[at] = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      to.sums[at] = to.heads[at] = 0;
      std::memset(values, 0, 32);
      continue;
    }
    const F32x16 inverse = broadcast(127.0f / peak);
    store_rounded_bytes(values, mul(a, inverse));
    store_rounded_bytes(values + 16, mul(b, inverse));
    to.scales[at] = peak / 127.0f;
    to.heads[at] = sum_bytes16(values);
    to.sums[at] = to.heads[at] + sum_bytes16(values + 16);
  }
}
