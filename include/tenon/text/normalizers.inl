#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "escaped_bytes.hpp"
#include "normalizers.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// Rewrites a text character by character.
template <class Change>
void each_character(std::string& text, Change change) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = escaped_char(text, at);
    change(c.code, out);
    at += static_cast<std::size_t>(c.length);
  }
  text = std::move(out);
}

constexpr bool is_chinese(std::uint32_t code) {
  // The published ranges, among them one that starts 0x100 late.
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

}  // namespace detail

TENON_INLINE TextStep to_normal_form(NormalForm form) {
  need_unicode("a Unicode normal form");
  return [form](std::string& text) { normalize(text, form); };
}

TENON_INLINE TextStep to_lower_case() {
  need_unicode("lower case");
  return [](std::string& text) {
    detail::each_character(text,
                           [](std::uint32_t code, std::string& out) { append_lower(out, code); });
  };
}

TENON_INLINE TextStep strip_ends(bool left, bool right) {
  return [left, right](std::string& text) {
    std::size_t begin = 0, end = 0;
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char c = escaped_char(text, at);
      const auto size = static_cast<std::size_t>(c.length);
      if (!is_white_space(c.code)) {
        if (!any) begin = at;
        any = true;
        end = at + size;
      }
      at += size;
    }
    if (!any) begin = end = text.size();
    if (!left) begin = any ? 0 : (right ? text.size() : 0);
    if (!right) end = text.size();
    text = text.substr(begin, end - begin);
  };
}

TENON_INLINE TextStep strip_marks() {
  need_unicode("the removal of accents");
  return [](std::string& text) {
    detail::each_character(text, [](std::uint32_t code, std::string& out) {
      if (!is_mark(code)) append_utf8(out, code);
    });
  };
}

TENON_INLINE TextStep replace_text(std::string what, std::string with) {
  return [what = std::move(what), with = std::move(with)](std::string& text) {
    if (what.empty()) return;
    std::string out;
    std::size_t from = 0;
    for (std::size_t at = 0; (at = text.find(what, from)) != std::string::npos;
         from = at + what.size()) {
      out.append(text, from, at - from);
      out += with;
    }
    if (from == 0) return;
    out.append(text, from);
    text = std::move(out);
  };
}

TENON_INLINE TextStep replace_matches(Regex what, std::string with) {
  return [what = std::move(what), with = std::move(with)](std::string& text) {
    Regex::Matcher matcher(what);
    std::string out;
    std::size_t done = 0, from = 0;
    for (TextRange match; from <= text.size() && matcher.find(text, from, match);) {
      out.append(text, done, match.begin - done);
      out += with;
      done = from = match.end;
      if (match.end > match.begin) continue;
      if (from == text.size()) break;
      from += static_cast<std::size_t>(escaped_char(text, from).length);
    }
    out.append(text, done);
    text = std::move(out);
  };
}

TENON_INLINE TextStep prepend_text(std::string what) {
  return [what = std::move(what)](std::string& text) {
    if (!text.empty()) text.insert(0, what);
  };
}

namespace detail {

// For text of ASCII alone, which most is: one pass, without tables.
inline void clean_ascii_for_bert(std::string& text, const BertCleaning& what) {
  std::size_t size = 0;
  for (const char c : text) {
    const bool blank = c == ' ' || (c >= '\t' && c <= '\r');
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 0x7F;
    if (what.clean && control && c != '\t' && c != '\n' && c != '\r') continue;
    const bool upper = what.lower_case && c >= 'A' && c <= 'Z';
    text[size++] = what.clean && blank ? ' ' : static_cast<char>(upper ? c - 'A' + 'a' : c);
  }
  text.resize(size);
}

}  // namespace detail

TENON_INLINE TextStep clean_for_bert(BertCleaning what) {
  need_unicode("BERT's normalizer");
  return [what](std::string& text) {
    const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (std::all_of(text.begin(), text.end(), ascii)) {
      detail::clean_ascii_for_bert(text, what);
      return;
    }
    detail::each_character(text, [&](std::uint32_t code, std::string& out) {
      if (what.clean) {
        const bool blank = code == '\t' || code == '\n' || code == '\r';
        if (code == 0 || code == 0xFFFD || (!blank && is_other(code))) return;
        if (is_white_space(code)) code = ' ';
      }
      const bool apart = what.chinese && detail::is_chinese(code);
      if (apart) out += ' ';
      append_utf8(out, code);
      if (apart) out += ' ';
    });
    if (what.strip_accents) {
      normalize(text, NormalForm::nfd);
      detail::each_character(text, [](std::uint32_t code, std::string& out) {
        if (!is_nonspacing_mark(code)) append_utf8(out, code);
      });
    }
    if (what.lower_case) {
      detail::each_character(text,
                             [](std::uint32_t code, std::string& out) { append_lower(out, code); });
    }
  };
}

}  // namespace tenon::inline TENON_ABI
