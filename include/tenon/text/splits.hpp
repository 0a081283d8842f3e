#pragma once
// The steps that cut a text into words ("pre-tokenizers"), each as the tokenizers of Hugging Face
// define it.
#include <string>
#include <string_view>
#include <vector>

#include "pretokens.hpp"
#include "regex.hpp"

namespace tenon::inline TENON_ABI {

// What becomes of the matches of an expression.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// Cuts every word at the matches; `invert` exchanges matches and what lies between.
SplitStep split_at(Regex regex, SplitBehavior behavior, bool invert = false);

// Runs of letters and digits, and runs of neither, without the white space between.
SplitStep split_words();
// At white space, which is dropped.
SplitStep split_white_space();
// Every punctuation character (of Unicode or ASCII), under the given behavior.
SplitStep split_punctuation(SplitBehavior behavior);
// Runs of digits, or each digit alone.
SplitStep split_digits(bool individual);

// A space in front of every word that does not start with one.
SplitStep space_in_front();
// Words in the byte alphabet, for steps that look at it, and back.
SplitStep to_byte_alphabet();
SplitStep from_byte_alphabet();

// Spaces become `mark`; one is put in front of the text where it starts with none; cut before
// marks.
enum class PrependScheme { never, first, always };
SplitStep metaspace(std::string mark, PrependScheme prepend, bool cut);

// The expression of GPT-2.
inline constexpr std::string_view gpt2_expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "splits.inl"
#endif
