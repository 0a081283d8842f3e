// How leaves read the scales of super-blocks (plane_tiles.hpp) in units of 32 k. Every product is
// exact: a half, and a code of at most eight bits. Compiled once per instruction set by
// for_each_isa.inl.

// Sixteen rows' scale codes and minimum codes of group g, from the words of the groups' codes.
TENON_LEAF inline __attribute__((always_inline)) F32x16 scale_codes(tenon::detail::SixBitPairs,
                                                                    const std::byte* words, int g) {
  return fma(load_fields<3>(words + 128, 4 * g), broadcast(16.0f), load_fields<15>(words, 4 * g));
}
TENON_LEAF inline __attribute__((always_inline)) F32x16 minimum_codes(tenon::detail::SixBitPairs,
                                                                      const std::byte* words,
                                                                      int g) {
  return fma(load_fields<12>(words + 128, 4 * g), broadcast(4.0f),
             load_fields<15>(words + 64, 4 * g));
}
TENON_LEAF inline __attribute__((always_inline)) F32x16 scale_codes(tenon::detail::FourBitPairs,
                                                                    const std::byte* words, int g) {
  return load_fields<15>(words + g / 4 * 64, g % 4 * 8);
}
TENON_LEAF inline __attribute__((always_inline)) F32x16 minimum_codes(tenon::detail::FourBitPairs,
                                                                      const std::byte* words,
                                                                      int g) {
  return load_fields<15>(words + g / 4 * 64, g % 4 * 8 + 4);
}
TENON_LEAF inline __attribute__((always_inline)) F32x16 scale_codes(tenon::detail::SixBits,
                                                                    const std::byte* words, int g) {
  const F32x16 low = load_fields<15>(words + g / 8 * 64, g % 8 * 4);
  return sub(fma(load_fields<3>(words + 128, 2 * g), broadcast(16.0f), low), broadcast(32.0f));
}
TENON_LEAF inline __attribute__((always_inline)) F32x16 scale_codes(tenon::detail::EightSixBits,
                                                                    const std::byte* words, int g) {
  const F32x16 low = load_fields<15>(words, 4 * g);
  return sub(fma(load_fields<3>(words + 64, 2 * g), broadcast(16.0f), low), broadcast(32.0f));
}
TENON_LEAF inline __attribute__((always_inline)) F32x16 scale_codes(tenon::detail::EightBits,
                                                                    const std::byte* words, int g) {
  return sub(load_fields<255>(words + g / 4 * 64, g % 4 * 8), broadcast(128.0f));
}

// Operations on vectors per unit of Q4_K of 16 rows, one token: 12 take nibbles apart, 8 are dot
// products, 7 and 6 decode scales and minima (a shift and a mask serve both), 5 multiply them by
// the halves and convert those, 4 fold. That hides behind the unit's 288 bytes from memory.
template <class F>
TENON_LEAF inline __attribute__((always_inline)) F32x16 group_scales(const std::byte* scales,
                                                                     Dim unit, int half) {
  using Layout = TileLayout<F>;
  const std::byte* at = scales + unit / 8 * Dim{Layout::scale_bytes};
  const int group = static_cast<int>(unit % 8) * Layout::kind.scales;
  return mul(load_half(reinterpret_cast<const std::uint16_t*>(at)),
             scale_codes(typename Layout::Groups{}, at + Layout::codes_at,
                         Layout::kind.scales == 2 ? group + half : group));
}
template <class F>
TENON_LEAF inline __attribute__((always_inline)) F32x16 group_minima(const std::byte* scales,
                                                                     Dim unit, int half) {
  using Layout = TileLayout<F>;
  const std::byte* at = scales + unit / 8 * Dim{Layout::scale_bytes};
  const int group = static_cast<int>(unit % 8) * Layout::kind.scales;
  return mul(load_half(reinterpret_cast<const std::uint16_t*>(at + 32)),
             minimum_codes(typename Layout::Groups{}, at + Layout::codes_at,
                           Layout::kind.scales == 2 ? group + half : group));
}
