#pragma once
// What Unicode's tables say, for normalizers: normal forms, case, categories, clusters. Needs
// utf8proc, which the CMake target tenon::text brings (TENON_WITH_TEXT); without it nothing here
// works.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// LoadError unless the tables are there: `what` is the declared step that needs them.
void need_unicode(std::string_view what);

// Replaces a text (UTF-8 but for escaped bytes) by its normal form. TokenizerError when memory runs
// out.
void normalize(std::string& text, NormalForm form);
// The lower-case form, one character or, of U+0130, two. Without context: a final sigma stays one.
void append_lower(std::string& out, std::uint32_t code);

// White_Space of Unicode.
constexpr bool is_white_space(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}
// General categories.
bool is_mark(std::uint32_t code);             // Mn, Mc, Me
bool is_nonspacing_mark(std::uint32_t code);  // Mn
bool is_other(std::uint32_t code);            // Cc, Cf, Cs, Co, Cn
// Letters, marks, digits, connectors and what else is Alphabetic: the \w of UTS 18.
bool is_word_character(std::uint32_t code);

// The bytes of the extended grapheme cluster at the start of a text that is not empty (UAX 29).
std::size_t cluster_size(std::string_view text);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "unicode.inl"
#endif
