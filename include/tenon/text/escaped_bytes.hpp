#pragma once
// Bytes that are not UTF-8, carried through steps that work on characters.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../core/utf8.hpp"

namespace tenon::inline TENON_ABI {

// A byte 0x80..0xFF that is no part of a well-formed character becomes the surrogate U+DC80 to
// U+DCFF, in the three bytes that UTF-8 would give it if it allowed surrogates. No well-formed text
// holds one, so nothing is confused and every byte comes back; regular expressions and Unicode's
// tables see a character of a kind of its own. (Python calls the same escape "surrogateescape".)
inline std::string escape_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const int length = utf8_front(text).length;
    if (length > 0) {
      out += text.substr(0, static_cast<std::size_t>(length));
      text.remove_prefix(static_cast<std::size_t>(length));
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[0]);
    out += '\xED';
    out += static_cast<char>(0xB0 | byte >> 6);
    out += static_cast<char>(0x80 | (byte & 0x3F));
    text.remove_prefix(1);
  }
  return out;
}

inline bool is_escape(std::string_view text, std::size_t at) {
  return text[at] == '\xED' && at + 2 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) >= 0xA0;
}

// The text with its escapes turned back into bytes.
inline std::string unescape_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_escape(text, at)) {
      out += text[at];
      continue;
    }
    const unsigned high = static_cast<unsigned char>(text[at + 1]) & 0x3u;
    out += static_cast<char>(high << 6 | (static_cast<unsigned char>(text[at + 2]) & 0x3Fu));
    at += 2;
  }
  return out;
}

// The character at `at` of a text that is UTF-8 but for escapes.
inline Utf8Char escaped_char(std::string_view text, std::size_t at) {
  const Utf8Char character = utf8_front(text.substr(at));
  if (character.length > 0) return character;
  if (!is_escape(text, at)) return {static_cast<unsigned char>(text[at]), 1};
  const auto bits = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]) & 0x3Fu; };
  return {0xD000u | bits(1) << 6 | bits(2), 3};
}

}  // namespace tenon::inline TENON_ABI
