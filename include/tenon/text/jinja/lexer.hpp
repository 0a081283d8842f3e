#pragma once
// The text of a template as tokens, with Jinja's whitespace control applied.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// The text of a template, and where in it something is. Rows and columns count from 1, columns in
// bytes.
class Source {
 public:
  // Line ends become "\n", and one at the very end goes, as in Jinja. LoadError for more than
  // `most` bytes.
  Source(std::string_view text, std::size_t most);

  std::string_view text() const { return text_; }
  struct Place {
    int row = 1, column = 1;
  };
  Place place(std::size_t at) const;
  // LoadError "chat template, row R, column C: ...".
  [[noreturn]] void fail_syntax(std::size_t at, std::string_view what) const;

 private:
  std::string text_;
};

struct Lexeme {
  enum class Kind { data, output, output_end, tag, tag_end, name, text, integer, real, sign, end };
  Kind kind = Kind::end;
  std::size_t at = 0;
  std::string text = {};  // of data and text as meant, of names and signs as written
  std::int64_t integer = 0;
  double real = 0;

  bool is(Kind k, std::string_view t) const { return kind == k && text == t; }
};

// trim_blocks and lstrip_blocks are on, as Hugging Face sets them. The last lexeme is `end`.
// LoadError, with the row and column, for a tag or a text that does not end, or a character that no
// expression has.
std::vector<Lexeme> lex(const Source& source);

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "lexer.inl"
#endif
