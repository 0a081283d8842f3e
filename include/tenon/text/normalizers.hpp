#pragma once
// The steps that change a text before it is cut ("normalizers"), each as the tokenizers of Hugging
// Face define it.
#include <string>
#include <string_view>

#include "pretokens.hpp"
#include "regex.hpp"
#include "unicode.hpp"

namespace tenon::inline TENON_ABI {

TextStep to_normal_form(NormalForm form);
// Character by character.
TextStep to_lower_case();
// White space at the ends of the text.
TextStep strip_ends(bool left, bool right);
// Characters of the categories Mn, Mc and Me.
TextStep strip_marks();
TextStep replace_text(std::string what, std::string with);
TextStep replace_matches(Regex what, std::string with);
// In front of every text that is not empty.
TextStep prepend_text(std::string what);

// What BERT does: drop control characters and make white space a space; put spaces around Chinese
// characters; drop accents; lower case. In this order.
struct BertCleaning {
  bool clean = true, chinese = true, strip_accents = true, lower_case = true;
};
TextStep clean_for_bert(BertCleaning what);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "normalizers.inl"
#endif
