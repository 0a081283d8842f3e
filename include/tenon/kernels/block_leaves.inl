// How leaves read the blocks of a tile, in units of 32 k whatever the format's block is. Compiled
// once per instruction set by for_each_isa.inl.

// Sixteen rows' quants of k = 16 half + 4 j .. + 3 of a unit, unsigned: the weight's integer plus
// TileLayout<F>::offset; 0 <= j < 4, half 0 or 1.
template <class F>
TENON_LEAF inline __attribute__((always_inline)) Bytes64 quants_at(const std::byte* values,
                                                                   Dim unit, int j, int half) {
  using Layout = TileLayout<F>;
  const std::byte* at = values + unit * Dim{Layout::unit_bytes};
  if constexpr (Layout::nibbles) {
    const Bytes64 both = load_bytes64(at + 64 * j);
    const Bytes64 codes = half == 0 ? low_nibbles(both) : high_nibbles(both);
    if constexpr (Layout::floats) {
      return e2m1_plus_12(codes);
    } else {
      return codes;
    }
  } else {
    return load_bytes64(at + 64 * (4 * half + j));
  }
}

// Sixteen rows' scales of a unit's half; its weights are scale * (quant - offset) + minimum.
template <class F>
TENON_LEAF inline __attribute__((always_inline)) F32x16 scales_at(const std::byte* scales, Dim unit,
                                                                  int) {
  const std::byte* at = scales + unit * Dim{TileLayout<F>::scale_bytes};
  if constexpr (TileLayout<F>::floats) {
    return load_half_scales(at);
  } else {
    return load_half(reinterpret_cast<const std::uint16_t*>(at));
  }
}
template <class F>
TENON_LEAF inline __attribute__((always_inline)) F32x16 minima_at(const std::byte* scales, Dim unit,
                                                                  int) {
  const std::byte* at = scales + unit * Dim{TileLayout<F>::scale_bytes} + 32;
  return load_half(reinterpret_cast<const std::uint16_t*>(at));
}
