#pragma once
#include "json_escapes.hpp"
#include "utf8.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline constexpr std::string_view json_letters = "\"\\nrtbf/", json_bytes = "\"\\\n\r\t\b\f/";
inline constexpr std::size_t json_must_escape = 7;  // of these; the slash only may be

// The four digits behind "\u" at byte `size` of the text, which are added to it.
inline bool take_json_unit(std::string_view text, std::size_t& size, std::uint32_t& unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++size) {
    const char c = size < text.size() ? text[size] : '\0';
    const std::size_t digit =
        hex_digits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + ('a' - 'A')) : c);
    if (digit == std::string_view::npos) return false;
    unit = unit * 16 + static_cast<std::uint32_t>(digit);
  }
  return true;
}

inline void append_json_unit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += hex_digits[unit >> shift & 15];
}

}  // namespace detail

TENON_INLINE JsonEscape json_escape(std::string_view text) {
  constexpr std::string_view digits = "four hexadecimal digits",
                             half = "both halves of a character";
  JsonEscape escape;
  if (text.empty()) return {0, 0, "an escape of JSON"};
  const std::size_t which = detail::json_letters.find(text[0]);
  if (which != std::string_view::npos) {
    return {static_cast<unsigned char>(detail::json_bytes[which]), 1, {}};
  }
  if (text[0] != 'u') return {0, 0, "an escape of JSON"};
  escape.size = 1;
  if (!detail::take_json_unit(text, escape.size, escape.code)) {
    return {0, escape.size, digits};
  }
  if (escape.code < 0xD800 || escape.code > 0xDFFF) return escape;
  if (escape.code > 0xDBFF || text.substr(escape.size, 2) != "\\u") return {0, escape.size, half};
  escape.size += 2;
  std::uint32_t low = 0;
  if (!detail::take_json_unit(text, escape.size, low)) return {0, escape.size, digits};
  if (low < 0xDC00 || low > 0xDFFF) return {0, escape.size, half};
  escape.code = 0x10000 + ((escape.code - 0xD800) << 10) + (low - 0xDC00);
  return escape;
}

TENON_INLINE std::string json_escaped(std::string_view text, bool ascii) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = utf8_front(text);
    const std::size_t bytes = c.length == 0 ? 1 : static_cast<std::size_t>(c.length);
    const std::size_t which = c.length == 1 ? detail::json_bytes.find(text[0]) : text.npos;
    if (which < detail::json_must_escape) {
      out += {'\\', detail::json_letters[which]};
    } else if (c.length == 1 && c.code < 0x20) {
      detail::append_json_unit(out, c.code);
    } else if (ascii && c.code >= 0x10000) {
      detail::append_json_unit(out, 0xD800 + ((c.code - 0x10000) >> 10));
      detail::append_json_unit(out, 0xDC00 + ((c.code - 0x10000) & 0x3FF));
    } else if (ascii && c.code >= 0x7F) {
      detail::append_json_unit(out, c.code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace tenon::inline TENON_ABI
