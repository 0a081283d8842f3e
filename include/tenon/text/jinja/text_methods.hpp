#pragma once
// What Python's str can do, on text that keeps its origins.
#include <cstdint>
#include <string_view>
#include <vector>

#include "interpreter.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// str.isspace() of Python for one character.
bool is_space_code(std::uint32_t code);
// Bytes of the last character; 0 of an empty text.
std::size_t last_character(std::string_view text);
// Without the characters of `what` at the sides asked for; of white space when `what` is null.
TaggedText stripped(const TaggedText& text, const TaggedText* what, bool left, bool right,
                    Budget& budget);
// Changes the case of ASCII letters; all others stay as they are.
enum class Case { lower, upper, title, capital, swapped };
TaggedText in_case(const TaggedText& text, Case how, Budget& budget);
// The first `most` places of `from` (all when negative) become `to`; both are text.
TaggedText replaced(const TaggedText& text, std::string_view from, const TaggedText& to,
                    std::int64_t most, Budget& budget);
// split(): at `separator`, or at runs of white space when it is null; `most` cuts unless negative.
std::vector<Value> split(const TaggedText& text, const TaggedText* separator, std::int64_t most,
                         bool from_right, Budget& budget);
std::vector<Value> lines_of(const TaggedText& text, bool keep_ends, Budget& budget);
// str.format() with {}, {0} and {name}.
TaggedText formatted(const TaggedText& format, const Arguments& arguments, Budget& budget);
TaggedText joined(const std::vector<Value>& items, const TaggedText& between, Budget& budget);

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "text_methods.inl"
#endif
