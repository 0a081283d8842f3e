// Reads memory and does nothing else. Compiled once per instruction set by for_each_isa.inl.

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
