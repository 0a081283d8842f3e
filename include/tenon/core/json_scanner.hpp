#pragma once
// Reading JSON of a known form in one pass, without building a tree of it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "error.hpp"

namespace tenon::inline TENON_ABI {

// Takes one token after another of a text that is valid UTF-8 (RFC 8259). Each call takes time
// linear in what it passes; LoadError, naming the byte, when something else stands there. `origin`
// and the text must outlive it.
class JsonScanner {
 public:
  JsonScanner(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  // The next byte that is no space, or 0 at the end; it is not taken.
  char peek() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    }
    return 0;
  }
  // Takes this byte when it is there.
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  // Takes it; `what` says for what it must be there: "a tensor name".
  void expect(char c, std::string_view what) {
    if (!take(c)) refuse(what);
  }
  // Takes a string; it stays valid until the next one that has escapes is taken.
  std::string_view string(std::string_view what);
  // Takes a whole number below 2^64 without a sign, fraction or exponent.
  std::uint64_t whole_number(std::string_view what);
  // Takes a number and returns its digits.
  std::string_view number(std::string_view what);
  // Takes this word when it is there: "null".
  bool word(std::string_view name);
  // Takes any value, nested at most 128 deep.
  void skip(std::string_view what);
  // Nothing but spaces may be left.
  void end();

  [[noreturn]] void refuse(std::string_view what) const;

 private:
  std::string_view text_, origin_;
  std::size_t at_ = 0;
  std::string unescaped_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "json_scanner.inl"
#endif
