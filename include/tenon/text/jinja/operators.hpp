#pragma once
// Python's operators on values, bounded.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "budget.hpp"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// No value, for that reason.
Value undefined(std::string what, Budget& budget);
// The value of a key, or null. ValueError for a list or dict as key.
const Value* find(const Dict& dict, const Value& key, Budget& budget);
// Before a key is put into a dict.
void charge_key(const Value& key, Budget& budget);
// Where `part` begins in the text, the first place at or behind `from`, or the last; npos when it
// does not. Counts what is compared.
std::size_t find_part(std::string_view text, std::string_view part, std::size_t from,
                      Budget& budget);
std::size_t find_last_part(std::string_view text, std::string_view part, Budget& budget);

// A value's type as Python calls it, for messages.
std::string_view type_name(const Value& value);

bool truth(const Value& value);
bool equal(const Value& a, const Value& b, Budget& budget, int level = 0);
// a < b; ValueError where Python has no order.
bool less(const Value& a, const Value& b, Budget& budget, int level = 0);
bool contains(const Value& in, const Value& item, Budget& budget);
std::size_t length(const Value& value, Budget& budget);
// What a loop over the value yields: the items of a list, the keys of a dict, the characters of a
// text, nothing for undefined. ValueError for what Python cannot iterate.
std::vector<Value> iterate(const Value& value, Budget& budget);

Value add(const Value& a, const Value& b, Budget& budget);
Value subtract(const Value& a, const Value& b);
Value multiply(const Value& a, const Value& b, Budget& budget);
Value divide(const Value& a, const Value& b);
Value floor_divide(const Value& a, const Value& b);
Value modulo(const Value& a, const Value& b, Budget& budget);
Value power(const Value& a, const Value& b);
Value negate(const Value& a);

// value[first:last:step]; none or undefined parts are left out.
Value slice(const Value& value, const Value& first, const Value& last, const Value& step,
            Budget& budget);
// value[index]; undefined where there is none, as Jinja has it.
Value item(const Value& value, const Value& index, Budget& budget);
// format % arguments.
TaggedText printf_text(const TaggedText& format, const std::vector<Value>& arguments,
                       Budget& budget);

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "arithmetic.inl"
#include "operators.inl"
#endif
