// Reads memory and does nothing else. Compiled once per instruction set by for_each_isa.inl.

// The sum of n floats, n a multiple of 128; eight independent chains.
TENON_LEAF inline float read_floats(const float* data, Dim n) {
  F32x16 sums[8];
  for (F32x16& lanes : sums) lanes = zero();
  for (Dim i = 0; i < n; i += 128) {
    for (int j = 0; j < 8; ++j) sums[j] = add(sums[j], load(data + i + 16 * j));
  }
  for (int j = 1; j < 8; ++j) sums[0] = add(sums[0], sums[j]);
  return sum(sums[0]);
}
