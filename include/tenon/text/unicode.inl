#pragma once
#include <algorithm>
#include <utility>

#include "escaped_bytes.hpp"
#include "unicode.hpp"

#if defined(TENON_WITH_TEXT)
#include <utf8proc.h>

#include <cstdlib>
#endif

namespace tenon::inline TENON_ABI {

#if defined(TENON_WITH_TEXT)

TENON_INLINE void need_unicode(std::string_view) {}

TENON_INLINE void normalize(std::string& text, NormalForm form) {
  // Below U+0300 only the first forms of composition are stable, below U+0080 all are.
  const bool composes = form == NormalForm::nfc;
  const unsigned char stable = composes ? 0xCC : 0x80;
  std::string out;
  bool copying = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    bool plain = true;
    // Up to the next escaped byte, which belongs to no form.
    while (end < text.size()) {
      const auto byte = static_cast<unsigned char>(text[end]);
      if (is_escape(text, end)) break;
      plain = plain && byte < stable;
      ++end;
    }
    if (!plain && !copying) {
      copying = true;
      out.assign(text, 0, at);
    }
    if (!plain) {
      int options = UTF8PROC_STABLE;
      options |= composes || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
      if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
      utf8proc_uint8_t* mapped = nullptr;
      const utf8proc_ssize_t size =
          utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                       static_cast<utf8proc_ssize_t>(end - at), &mapped,
                       static_cast<utf8proc_option_t>(options));
      if (size < 0) {
        fail<TokenizerError>("a text of ", end - at,
                             " bytes must have a Unicode normal form, utf8proc says: ",
                             utf8proc_errmsg(size), "; encode it in parts");
      }
      out.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size));
      std::free(mapped);
    } else if (copying) {
      out.append(text, at, end - at);
    }
    const std::size_t escape = end < text.size() ? 3 : 0;
    if (copying) out.append(text, end, escape);
    at = end + escape;
  }
  if (copying) text = std::move(out);
}

TENON_INLINE void append_lower(std::string& out, std::uint32_t code) {
  if (code == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  append_utf8(out,
              static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

TENON_INLINE bool is_mark(std::uint32_t code) {
  const utf8proc_category_t c = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

TENON_INLINE bool is_nonspacing_mark(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_MN;
}

TENON_INLINE bool is_word_character(std::uint32_t code) {
  // Circled and squared letters are Alphabetic and no letters.
  const bool enclosed =
      (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
      (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
  const utf8proc_category_t c = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return enclosed || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_ND) ||
         c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_PC;
}

TENON_INLINE bool is_other(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
      return true;
    default:
      return false;
  }
}

TENON_INLINE std::size_t cluster_size(std::string_view text) {
  Utf8Char last = escaped_char(text, 0);
  auto at = static_cast<std::size_t>(last.length);
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const Utf8Char next = escaped_char(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state)) {
      break;
    }
    at += static_cast<std::size_t>(next.length);
    last = next;
  }
  return at;
}

#else

TENON_INLINE void need_unicode(std::string_view what) {
  fail<LoadError>(
      "a tokenizer with ", what,
      " needs Unicode's tables, and this program was built without them; link the CMake ",
      "target tenon::text (PCRE2 and utf8proc)");
}
TENON_INLINE void normalize(std::string&, NormalForm) {
  need_unicode("a normal form");
}
TENON_INLINE void append_lower(std::string&, std::uint32_t) {
  need_unicode("lower case");
}
TENON_INLINE bool is_mark(std::uint32_t) {
  return false;
}
TENON_INLINE bool is_nonspacing_mark(std::uint32_t) {
  return false;
}
TENON_INLINE bool is_other(std::uint32_t) {
  return false;
}
TENON_INLINE bool is_word_character(std::uint32_t) {
  return false;
}
TENON_INLINE std::size_t cluster_size(std::string_view text) {
  return text.size();
}

#endif

}  // namespace tenon::inline TENON_ABI
