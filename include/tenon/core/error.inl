#pragma once
#include <charconv>

#include "error.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

TENON_INLINE void Piece::print(long long n) {
  end(std::to_chars(digits_, digits_ + sizeof digits_, n).ptr);
}

TENON_INLINE void Piece::print(unsigned long long n) {
  end(std::to_chars(digits_, digits_ + sizeof digits_, n).ptr);
}

TENON_INLINE void Piece::print(double x) {
  end(std::to_chars(digits_, digits_ + sizeof digits_, x, std::chars_format::general, 6).ptr);
}

TENON_INLINE std::string join(std::initializer_list<Piece> pieces) {
  std::string out;
  for (const Piece& piece : pieces) out += piece.text();
  return out;
}

}  // namespace detail

TENON_INLINE std::string printable(std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
    }
  }
  if (text.size() > 80) out += "...";
  return out;
}

TENON_INLINE std::string with_origin(std::string_view origin, std::string_view what) {
  constexpr std::string_view separators = "/\\";
  const bool folder = !origin.empty() && separators.find(origin.back()) != separators.npos;
  const bool begins = what.size() > origin.size() && what.substr(0, origin.size()) == origin;
  // "model must be" does not begin with the folder "model".
  const char next = begins ? what[origin.size()] : ' ';
  if (begins && (folder || next == ':' || separators.find(next) != separators.npos)) {
    return std::string(what);
  }
  return message(origin, ": ", what);
}

}  // namespace tenon::inline TENON_ABI
