#pragma once
// Whether bytes are UTF-8.
#include <cstddef>
#include <string_view>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// True for well-formed UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF.
// Source: Unicode 15, table 3-7.
constexpr bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i++);
    if (lead < 0x80) continue;
    if (lead < 0xc2 || lead > 0xf4) return false;
    const std::size_t tail = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (text.size() - i < tail) return false;
    // Only the first byte after these four leads has a range narrower than 80..bf.
    const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i) < low || byte(i) > high) return false;
    for (std::size_t k = 1; k < tail; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    i += tail;
  }
  return true;
}

}  // namespace tenon::inline TENON_ABI
