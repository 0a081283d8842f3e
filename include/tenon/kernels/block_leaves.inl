// How leaves read the blocks of a tile, in units of 32 k whatever the format's block is. Compiled
// once per instruction set by for_each_isa.inl.

// Sixteen rows' quants of k = 16 half + 4 j .. + 3 of a unit, unsigned: the weight's integer plus
// TileLayout<F>::offset; 0 <= j < 4, half 0 or 1. Two operations for each plane (see QuantPlanes).
template <class F>
TENON_LEAF inline __attribute__((always_inline)) Bytes64 quants_at(const std::byte* values,
                                                                   Dim unit, int j, int half) {
  using Layout = TileLayout<F>;
  constexpr int low = Layout::planes.low, high = Layout::planes.high;
  const std::byte* at = values + unit * Dim{Layout::unit_bytes};
  const int v = 4 * half + j;
  if constexpr (low == 8) {
    return load_bytes64(at + 64 * v);
  } else {
    Bytes64 codes = fields<low>(load_bytes64(at + v % low * 64), v / low * low);
    if constexpr (high > 0) {
      const Bytes64 above = load_bytes64(at + 64 * low + v % high * 64);
      codes = with_fields<high, low>(codes, above, v / high * high);
    }
    if constexpr (Layout::code == QuantCode::e2m1) {
      return e2m1_plus_12(codes);
    } else if constexpr (Layout::code == QuantCode::iq4) {
      return iq4_plus_128(codes);
    } else {
      return codes;
    }
  }
}

// Sixteen rows' scales of a unit's half; its weights are scale * (quant - offset) + minimum.
template <class F>
TENON_LEAF inline __attribute__((always_inline)) F32x16 scales_at(const std::byte* scales, Dim unit,
                                                                  int half) {
  using Layout = TileLayout<F>;
  if constexpr (requires { typename Layout::Groups; }) {
    return group_scales<F>(scales, unit, half);
  } else {
    const std::byte* at = scales + unit * Dim{Layout::scale_bytes / (F::block / 32)};
    if constexpr (requires { requires Layout::exponent_scales; }) {
      return load_half_scales(at);
    } else {
      if constexpr (Layout::kind.scales == 2) at += half * Dim{tile_rows * 2};
      return load_half(reinterpret_cast<const std::uint16_t*>(at));
    }
  }
}
template <class F>
TENON_LEAF inline __attribute__((always_inline)) F32x16 minima_at(const std::byte* scales, Dim unit,
                                                                  int half) {
  if constexpr (F::block > 32) {
    return group_minima<F>(scales, unit, half);
  } else {
    const std::byte* at = scales + unit * Dim{TileLayout<F>::scale_bytes} + 32;
    return load_half(reinterpret_cast<const std::uint16_t*>(at));
  }
}
