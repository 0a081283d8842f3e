#pragma once
// How blocks store codes of a few bits.
#include <cstddef>
#include <cstdint>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI::detail {

// `Width` bits of each of many codes. A span of 8 / Width * Run codes takes Run bytes: its code
// k * Run + i lies in byte i, from bit k * Width up.
template <int Width, Dim Run>
struct BitPlane {
  static constexpr int per_byte = 8 / Width;
  static constexpr unsigned mask = (1u << Width) - 1;

  // codes[i] gains the stored bits, from bit Shift up; n is a multiple of the span.
  template <int Shift = 0>
  static void read(const std::byte* from, Dim n, std::uint8_t* codes) {
    for (Dim first = 0; first < n; first += per_byte * Run, from += Run) {
      for (int k = 0; k < per_byte; ++k) {
        std::uint8_t* to = codes + first + k * Run;
        for (Dim i = 0; i < Run; ++i) {
          const unsigned bits = std::to_integer<unsigned>(from[i]) >> (k * Width) & mask;
          to[i] = static_cast<std::uint8_t>(to[i] | bits << Shift);
        }
      }
    }
  }
  // Stores bits [Shift, Shift + Width) of n codes; the bytes must be zero before.
  template <int Shift = 0>
  static void write(const std::uint8_t* codes, Dim n, std::byte* to) {
    for (Dim first = 0; first < n; first += per_byte * Run, to += Run) {
      for (int k = 0; k < per_byte; ++k) {
        const std::uint8_t* from = codes + first + k * Run;
        for (Dim i = 0; i < Run; ++i) {
          to[i] |= static_cast<std::byte>((from[i] >> Shift & mask) << (k * Width));
        }
      }
    }
  }
};

}  // namespace tenon::inline TENON_ABI::detail
