// Arithmetic on registers and nothing else. Compiled once per instruction set by for_each_isa.inl.

// `rounds` multiply-adds on each lane of as many registers as hide their latency; a positive sum.
TENON_LEAF inline float multiply_adds(Dim rounds) {
  F32x16 sums[accumulators];
  const F32x16 by = broadcast(0.5f), more = broadcast(0.25f);
  TENON_UNROLL
  for (int j = 0; j < accumulators; ++j) sums[j] = broadcast(static_cast<float>(j));
  for (Dim i = 0; i < rounds; ++i) {
    TENON_UNROLL
    for (int j = 0; j < accumulators; ++j) sums[j] = fma(sums[j], by, more);
  }
  TENON_UNROLL
  for (int j = 1; j < accumulators; ++j) sums[0] = add(sums[0], sums[j]);
  return sum(sums[0]);
}
