#pragma once
#include <charconv>
#include <utility>

#include "lexer.hpp"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE Source::Source(std::string_view text, std::size_t most) {
  if (text.size() > most) {
    fail<LoadError>("a chat template must have at most ", most, " bytes, this one has ",
                    text.size(), "; the file is damaged or hostile: give another template");
  }
  text_.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      text_ += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      text_ += text[i];
    }
  }
  if (!text_.empty() && text_.back() == '\n') text_.pop_back();
}

TENON_INLINE Source::Place Source::place(std::size_t at) const {
  Place place;
  for (std::size_t i = 0; i < at && i < text_.size(); ++i) {
    ++place.column;
    if (text_[i] == '\n') place = {place.row + 1, 1};
  }
  return place;
}

TENON_INLINE void Source::fail_syntax(std::size_t at, std::string_view what) const {
  const Place where = place(at);
  fail<LoadError>("chat template, row ", where.row, ", column ", where.column, ": ", what,
                  "; correct the template or give another");
}

namespace detail {

inline bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_name(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  std::vector<Lexeme> run() {
    while (at_ < text_.size()) {
      std::size_t open = at_;
      while ((open = text_.find('{', open)) != text_.npos) {
        const char c = open + 1 < text_.size() ? text_[open + 1] : '\0';
        if (c == '{' || c == '%' || c == '#') break;
        ++open;
      }
      if (open == text_.npos) {
        data(at_, text_.size());
        break;
      }
      const char kind = text_[open + 1];
      const char sign = peek(open + 2);
      data(at_, shown_end(open, kind, sign));
      at_ = open + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      if (kind == '#') {
        skip_comment(open);
      } else if (kind == '%' && raw_tag(open)) {
        continue;
      } else {
        add({kind == '{' ? Lexeme::Kind::output : Lexeme::Kind::tag, open});
        expression(open, kind == '{' ? '}' : '%');
      }
    }
    add({Lexeme::Kind::end, text_.size()});
    return std::move(out_);
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  void add(Lexeme lexeme) { out_.push_back(std::move(lexeme)); }
  void data(std::size_t from, std::size_t to) {
    if (to > from) add({Lexeme::Kind::data, from, std::string(text_.substr(from, to - from))});
  }
  bool line_starts(std::size_t at) const { return at == 0 || text_[at - 1] == '\n'; }

  // Where the data before the tag at `open` ends: '-' takes away all white space, and a tag or
  // comment that stands first on its line takes its indentation, but for '+'.
  std::size_t shown_end(std::size_t open, char kind, char sign) const {
    std::size_t end = open;
    if (sign == '-') {
      while (end > at_ && is_space(text_[end - 1])) --end;
    } else if (sign != '+' && kind != '{') {
      while (end > at_ && text_[end - 1] != '\n' && is_space(text_[end - 1])) --end;
      if (!line_starts(end)) return open;
    }
    return end;
  }
  // After the end of a tag: '-' takes all white space, else one line end goes with it.
  void after_tag(char sign) {
    if (sign == '-') {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    } else if (sign != '+' && peek(at_) == '\n') {
      ++at_;
    }
  }
  void skip_comment(std::size_t open) {
    const std::size_t end = text_.find("#}", at_);
    if (end == text_.npos) source_.fail_syntax(open, "this comment must end with \"#}\"");
    const char sign = end > at_ ? text_[end - 1] : '\0';
    at_ = end + 2;
    after_tag(sign);
  }

  // {% raw %} ... {% endraw %}: what lies between is data.
  bool raw_tag(std::size_t open) {
    char sign = '\0';
    std::size_t at = tag_named("raw", at_, sign);
    if (at == 0) return false;
    at_ = at;
    if (sign == '-') after_tag(sign);
    for (std::size_t close = at_; (close = text_.find("{%", close)) != text_.npos; close += 2) {
      const char before = peek(close + 2);
      at = tag_named("endraw", close + 2 + (before == '-' || before == '+' ? 1 : 0), sign);
      if (at == 0) continue;
      data(at_, shown_end(close, '%', before));
      at_ = at;
      after_tag(sign);
      return true;
    }
    source_.fail_syntax(open, "this raw block must end with {% endraw %}");
  }
  // The place after a tag of that name and nothing else whose name may start at `at`, or 0.
  std::size_t tag_named(std::string_view name, std::size_t at, char& sign) const {
    const auto spaces = [&] {
      while (at < text_.size() && is_space(text_[at])) ++at;
    };
    spaces();
    if (text_.substr(at, name.size()) != name) return 0;
    at += name.size();
    spaces();
    sign = peek(at);
    if (sign == '-' || sign == '+') ++at;
    return text_.substr(at, 2) == "%}" ? at + 2 : 0;
  }

  void expression(std::size_t open, char closer) {
    std::string brackets;  // those that are open; within them nothing ends the tag
    for (;;) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      if (at_ >= text_.size()) {
        source_.fail_syntax(open, message("this tag must end with \"", closer, "}\""));
      }
      const char c = text_[at_];
      const bool marked = c == '-' || (c == '+' && closer == '%');
      const std::size_t end = at_ + (marked ? 1 : 0);
      if (brackets.empty() && peek(end) == closer && peek(end + 1) == '}') {
        add({closer == '}' ? Lexeme::Kind::output_end : Lexeme::Kind::tag_end, at_});
        at_ = end + 2;
        if (closer == '%' || c == '-') after_tag(marked ? c : '\0');
        return;
      }
      if (is_digit(c)) {
        number();
      } else if (is_name(c)) {
        const std::size_t start = at_;
        while (is_name(peek(at_))) ++at_;
        add({Lexeme::Kind::name, start, std::string(text_.substr(start, at_ - start))});
      } else if (c == '"' || c == '\'') {
        quoted(c);
      } else {
        sign(brackets);
      }
    }
  }
  void number() {
    const std::size_t start = at_;
    const bool place = start > 0 && text_[start - 1] == '.';  // a.0.1: numbers of places
    std::string digits;
    const auto take = [&] {
      while (is_digit(peek(at_)) || (peek(at_) == '_' && is_digit(peek(at_ + 1)))) {
        if (text_[at_] != '_') digits += text_[at_];
        ++at_;
      }
    };
    take();
    bool whole = true;
    if (!place && peek(at_) == '.' && is_digit(peek(at_ + 1))) {
      whole = false;
      digits += text_[at_++];
      take();
    }
    const std::size_t sign = peek(at_ + 1) == '-' || peek(at_ + 1) == '+' ? 1 : 0;
    if (!place && (peek(at_) == 'e' || peek(at_) == 'E') && is_digit(peek(at_ + 1 + sign))) {
      whole = false;
      digits += 'e';
      if (sign > 0 && text_[at_ + 1] == '-') digits += '-';
      at_ += 1 + sign;
      take();
    }
    Lexeme lexeme{whole ? Lexeme::Kind::integer : Lexeme::Kind::real, start};
    const char* last = digits.data() + digits.size();
    const auto error = whole ? std::from_chars(digits.data(), last, lexeme.integer).ec
                             : std::from_chars(digits.data(), last, lexeme.real).ec;
    if (error != std::errc{}) source_.fail_syntax(start, "this number is too large");
    add(std::move(lexeme));
  }
  void quoted(char quote) {
    const std::size_t start = at_++;
    Lexeme lexeme{Lexeme::Kind::text, start};
    for (;;) {
      if (at_ >= text_.size()) {
        source_.fail_syntax(start, message("this text must end with ", quote));
      }
      const char c = text_[at_++];
      if (c == quote) break;
      if (c == '\\' && at_ < text_.size()) {
        escape(lexeme.text);
      } else {
        lexeme.text += c;
      }
    }
    add(std::move(lexeme));
  }
  // As in Python; what is no escape there stays as it is.
  void escape(std::string& out) {
    constexpr std::string_view escapes = "ntr\\'\"abfv", plain = "\n\t\r\\'\"\a\b\f\v";
    const char c = text_[at_++];
    if (const std::size_t which = escapes.find(c); which != escapes.npos) {
      out += plain[which];
    } else if (c == '\n') {
      return;
    } else if (const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; n > 0) {
      std::uint32_t code = 0;
      const char* first = text_.data() + at_;
      const std::size_t left = text_.size() - at_;
      const auto [end, error] = std::from_chars(first, first + (n < left ? n : left), code, 16);
      if (error != std::errc{} || end != first + n || code > 0x10FFFF)
        source_.fail_syntax(at_ - 2, message(n, " hexadecimal digits of a character must follow"));
      append_utf8(out, code);
      at_ += n;
    } else if (c >= '0' && c <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(c - '0');
      for (int i = 0; i < 2 && peek(at_) >= '0' && peek(at_) <= '7'; ++i)
        code = code * 8 + static_cast<std::uint32_t>(text_[at_++] - '0');
      append_utf8(out, code);
    } else {
      out += {'\\', c};
    }
  }
  void sign(std::string& brackets) {
    constexpr std::string_view pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    const std::size_t start = at_;
    for (const std::string_view pair : pairs) {
      if (text_.substr(at_, 2) != pair) continue;
      at_ += 2;
      return add({Lexeme::Kind::sign, start, std::string(pair)});
    }
    const char c = text_[at_++];
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos) {
      source_.fail_syntax(start, message("no expression has '", printable({&c, 1}), "' here"));
    }
    if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty() || brackets.back() != c) {
        source_.fail_syntax(start, message('\'', c, "' closes what is not open"));
      }
      brackets.pop_back();
    }
    add({Lexeme::Kind::sign, start, std::string(1, c)});
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Lexeme> out_;
};

}  // namespace detail

TENON_INLINE std::vector<Lexeme> lex(const Source& source) {
  return detail::Lexer(source).run();
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
