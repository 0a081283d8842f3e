// Dot products of bytes on registers and nothing else, by the ByteDot of the instruction set.

// Groups of four products added to a lane, in one round.
inline constexpr int byte_sums = ByteDot::signs_wide && accumulators > 8 ? 8 : accumulators;

// `rounds` of byte_sums dot products on all lanes; `bytes`: 64 of them, and 64 for each sum, in
// [0, 127]. They are loaded again in every round, and where a product is several instructions each
// sum has its own: else a compiler would multiply once and add the same over and over.
TENON_LEAF inline float byte_dots(const std::byte* bytes, Dim rounds) {
  I32x16 sums[byte_sums];
  TENON_UNROLL
  for (int j = 0; j < byte_sums; ++j) sums[j] = broadcast_int(j);
  for (Dim i = 0; i < rounds; ++i) {
    __asm__ volatile("" : "+r"(bytes));  // as if they could be others than before
    const Bytes64 x = load_bytes64(bytes);
    TENON_UNROLL
    for (int j = 0; j < byte_sums; ++j) {
      const int from = ByteDot::signs_wide ? 64 * (j + 1) : 64;
      sums[j] = ByteDot::narrow(sums[j], load_bytes64(bytes + from), x);
    }
  }
  F32x16 all = zero();
  TENON_UNROLL
  for (int j = 0; j < byte_sums; ++j) {
    I32x16 last = sums[j];
    __asm__ volatile("" : "+m"(last));  // or GCC keeps all sums in memory, to read them as floats
    all = add(all, float_of_bits(last));
  }
  return sum(all);
}
