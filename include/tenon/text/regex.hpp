#pragma once
// Regular expressions of pre-tokenizers, in the dialect that tokenizer files are written in. Needs
// PCRE2, which the CMake target tenon::text brings (TENON_WITH_TEXT).
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "../core/error.hpp"
#include "../core/utf8.hpp"

namespace tenon::inline TENON_ABI {

// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

// An immutable compiled expression; copies share it. Files are written for Oniguruma (Ruby syntax,
// Unicode): \s is White_Space, \w Alphabetic, marks, digits and connectors, \d decimal digits, ^
// and $ match at lines. What PCRE2 would read otherwise is rewritten; what cannot be is a LoadError
// that names it, so an expression never means nearly what its author meant.
class Regex {
 public:
  // LoadError for an expression that is not well formed, too large, or uses an unsupported
  // construct.
  explicit Regex(std::string_view expression);
  // An expression that matches the text and nothing else.
  static std::string quoted(std::string_view text);

  // Finds matches in one thread; cheap to make.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;
    // The first match of a text (UTF-8 but for escaped bytes) that starts at `from` or later; it
    // may be empty. TokenizerError when the expression takes more steps than any sensible one
    // needs.
    bool find(std::string_view text, std::size_t from, TextRange& match);

   private:
    int retry(std::string_view text, std::size_t from);

    [[maybe_unused]] const Regex& regex_;
    [[maybe_unused]] void *data_ = nullptr, *context_ = nullptr, *stack_ = nullptr;
  };

  // The expression in PCRE2's dialect.
  static std::string translated(std::string_view expression);

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "regex.inl"
#endif
