#pragma once
// Python's operators on values, bounded.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// What one rendering may take. A template comes from a file: it must not be able to hang or to
// fill the memory of the program that reads it.
struct Limits {
  std::size_t template_bytes = std::size_t{1} << 20;
  std::size_t output_bytes = std::size_t{1} << 24;
  std::size_t made_bytes = std::size_t{1} << 28;  // of all values that come to be, freed or not
  std::size_t steps = 5'000'000;                  // nodes evaluated, values and bytes read
  int depth = 600;  // nodes in evaluation at once: recursion, some 300 KB of stack
};

// Counts what a rendering takes against its limits; ValueError when one is reached.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  void step() { look(0); }
  // Before that many bytes are read: as many steps as take about as long.
  void look(std::size_t bytes) {
    constexpr std::size_t bytes_of_step = 256;
    steps_ += 1 + bytes / bytes_of_step;
    if (steps_ > limits_.steps) exceeded("steps", limits_.steps);
  }
  // Before `part` bytes are looked for in `all`: each place may agree up to the part's end.
  void search(std::size_t all, std::size_t part) {
    constexpr std::size_t compared_at_once = 16;
    look(all < part ? 0 : all + (all - part) / compared_at_once * part);
  }
  // Before a value of that many bytes is made.
  void make(std::size_t bytes) {
    constexpr std::size_t least = 64;
    if (bytes > limits_.made_bytes || (made_ += bytes + least) > limits_.made_bytes)
      exceeded("bytes of values", limits_.made_bytes);
  }
  void make_items(std::size_t count) {
    make(count > limits_.made_bytes / sizeof(Value) ? limits_.made_bytes + 1
                                                    : count * sizeof(Value));
  }
  const Limits& limits() const { return limits_; }
  [[noreturn]] static void exceeded(std::string_view what, std::size_t most);

 private:
  Limits limits_;
  std::size_t steps_ = 0, made_ = 0;
};

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
