#pragma once
#include <limits>

#include "json_escapes.hpp"
#include "json_scanner.hpp"
#include "utf8.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void JsonScanner::refuse(std::string_view what) const {
  fail<LoadError>(origin_, ": the JSON must hold ", what, " at its byte ", at_, ", it has \"",
                  printable(text_.substr((std::min)(at_, text_.size()), 24)),
                  "\"; the file is damaged, download or convert it again");
}

TENON_INLINE std::string_view JsonScanner::string(std::string_view what) {
  expect('"', what);
  const std::size_t first = at_;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
         static_cast<unsigned char>(text_[at_]) >= 0x20) {
    ++at_;
  }
  if (at_ < text_.size() && text_[at_] == '"') return text_.substr(first, at_++ - first);
  unescaped_.assign(text_.substr(first, at_ - first));
  while (true) {
    if (at_ == text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) refuse(what);
    const char c = text_[at_++];
    if (c == '"') return unescaped_;
    if (c != '\\') {
      unescaped_ += c;
      continue;
    }
    const JsonEscape escape = json_escape(text_.substr(at_));
    at_ += escape.size;
    if (!escape.expected.empty()) refuse(escape.expected);
    append_utf8(unescaped_, escape.code);
  }
}

TENON_INLINE std::uint64_t JsonScanner::whole_number(std::string_view what) {
  const char first = peek();
  if (first < '0' || first > '9') refuse(what);
  std::uint64_t value = 0;
  const std::size_t begin = at_;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    constexpr std::uint64_t most = (std::numeric_limits<std::uint64_t>::max)();
    if (value > (most - digit) / 10) refuse(what);
    value = value * 10 + digit;
  }
  if (first == '0' && at_ - begin > 1) refuse(what);
  const char next = at_ < text_.size() ? text_[at_] : '\0';
  if (next == '.' || next == 'e' || next == 'E') refuse(what);
  return value;
}

TENON_INLINE bool JsonScanner::word(std::string_view name) {
  if (peek() != name[0] || text_.substr(at_, name.size()) != name) return false;
  at_ += name.size();
  return true;
}

TENON_INLINE std::string_view JsonScanner::number(std::string_view what) {
  const char sign = peek();
  if (sign != '-' && (sign < '0' || sign > '9')) refuse(what);
  const std::size_t begin = at_;
  const auto digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == first) refuse("a number");
    return at_ - first;
  };
  const auto here = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
  if (here('-')) ++at_;
  const bool zero = here('0');
  if (digits() > 1 && zero) refuse("a number without leading zeros");
  if (here('.')) {
    ++at_;
    digits();
  }
  if (here('e') || here('E')) {
    ++at_;
    if (here('+') || here('-')) ++at_;
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

TENON_INLINE void JsonScanner::skip(std::string_view what) {
  constexpr std::size_t deepest = 128;
  std::string open;  // the brackets that must close
  do {
    const char c = peek();
    if (c == '{' || c == '[') {
      ++at_;
      if (open.size() == deepest) refuse("values nested at most 128 deep");
      open += c == '{' ? '}' : ']';
      if (c == '{' && peek() != '}') {
        string("a key");
        expect(':', "a colon");
        continue;
      }
      if (c == '[' && peek() != ']') continue;
    } else if (c == '"') {
      string(what);
    } else if (!word("true") && !word("false") && !word("null")) {
      number(what);
    }
    while (!open.empty() && take(open.back())) open.pop_back();
    if (open.empty()) return;
    expect(',', "a comma or a closing bracket");
    if (open.back() == '}') {
      string("a key");
      expect(':', "a colon");
    }
  } while (true);
}

TENON_INLINE void JsonScanner::end() {
  peek();
  if (at_ < text_.size()) refuse("nothing more");
}

}  // namespace tenon::inline TENON_ABI
