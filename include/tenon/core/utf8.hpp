#pragma once
// UTF-8 as the Unicode Standard defines it (chapter 3, table 3-7): reading and writing one
// character, checking text, and replacing what is not UTF-8. Nothing here throws but for memory.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

// U+FFFD, which stands for bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

namespace detail {
// What the first byte of a character promises: its length, and the range of its second byte.
struct Utf8Lead {
  int length = 0;  // 0: no character starts with this byte
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};
constexpr Utf8Lead utf8_lead(unsigned char byte) {
  if (byte < 0x80) return {1, 0x80, 0xBF};
  if (byte < 0xC2) return {0, 0x80, 0xBF};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // no overlong forms
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // nothing above U+10FFFF
  return {0, 0x80, 0xBF};
}
}  // namespace detail

struct Utf8Char {
  std::uint32_t code = 0;
  int length = 0;  // bytes; 0: the text does not start with a well-formed character
};

// The character at the start of `text`.
constexpr Utf8Char utf8_front(std::string_view text) {
  if (text.empty()) return {};
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const detail::Utf8Lead lead = detail::utf8_lead(first);
  if (lead.length == 0 || text.size() < static_cast<std::size_t>(lead.length)) return {};
  std::uint32_t code = first & (0x7Fu >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    const unsigned char low = i == 1 ? lead.low : static_cast<unsigned char>(0x80);
    const unsigned char high = i == 1 ? lead.high : static_cast<unsigned char>(0xBF);
    if (byte < low || byte > high) return {};
    code = code << 6 | (byte & 0x3Fu);
  }
  return {code, lead.length};
}

// True for well-formed UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF.
constexpr bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const int length = utf8_front(text).length;
    if (length == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

// Appends the bytes of a code point, at most U+10FFFF. A surrogate gets the three bytes that it
// would have if UTF-8 allowed it: whether it may stand there is the caller's to know.
inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    tail(6);
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    tail(12);
    tail(6);
  }
  tail(0);
}

// Turns bytes that arrive in pieces into UTF-8. A character is passed on when its last byte is
// there; a sequence that can no longer become one is replaced by U+FFFD, one for each "maximal
// subpart" (Unicode 3.9), so at most three bytes are ever held.
class Utf8Repair {
 public:
  void push(std::string_view bytes, std::string& out);
  // The end of the text: a character that still lacks bytes will never get them.
  void finish(std::string& out);
  bool holding() const { return missing_ > 0; }

 private:
  void start(char c, std::string& out);

  char held_[4] = {};
  std::size_t size_ = 0;
  int missing_ = 0;  // bytes until the held character is whole
  unsigned char low_ = 0x80, high_ = 0xBF;
};

// `bytes` with everything that is not UTF-8 replaced by U+FFFD, as Utf8Repair does it.
std::string to_utf8(std::string_view bytes);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "utf8.inl"
#endif
