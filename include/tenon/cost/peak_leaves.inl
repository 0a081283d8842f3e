// Arithmetic on registers, or reading memory, and nothing else: what a machine does at most.
// Compiled once per instruction set by for_each_isa.inl.

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

// The sum of n floats, n a multiple of 128, read as eight streams: one does not keep enough lines
// on their way from memory.
TENON_LEAF inline float read_floats(const float* data, Dim n) {
  F32x16 sums[8];
  TENON_UNROLL
  for (int j = 0; j < 8; ++j) sums[j] = zero();
  const Dim each = n / 8;
  for (Dim i = 0; i < each; i += 16) {
    TENON_UNROLL
    for (int j = 0; j < 8; ++j) sums[j] = add(sums[j], load(data + j * each + i));
  }
  TENON_UNROLL
  for (int j = 1; j < 8; ++j) sums[0] = add(sums[0], sums[j]);
  return sum(sums[0]);
}
