#pragma once
// The character by which SentencePiece and its followers write a space in pieces.
#include <string>
#include <string_view>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

inline constexpr std::string_view space_mark = "\xE2\x96\x81";  // U+2581

// The piece with every mark turned into the space it stands for.
inline std::string with_spaces(std::string_view piece) {
  std::string text;
  while (true) {
    const std::size_t at = piece.find(space_mark);
    text += piece.substr(0, at);
    if (at == std::string_view::npos) return text;
    text += ' ';
    piece.remove_prefix(at + space_mark.size());
  }
}

}  // namespace tenon::inline TENON_ABI
