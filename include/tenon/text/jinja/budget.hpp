#pragma once
// What one rendering may take.
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "tagged_text.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// Thrown inside the engine; the interpreter adds where in the template it happened.
struct ValueError {
  std::string what;
};

// A template comes from a file: it must not be able to hang the program that reads it, or to fill
// its memory. What is given to it to render may be long, so each byte of that adds to two limits,
// up to 4 MiB of bytes: 64 bytes of values and 1 step.
struct Limits {
  std::size_t template_bytes = std::size_t{1} << 20;
  std::size_t output_bytes = std::size_t{1} << 24;
  std::size_t made_bytes = std::size_t{20} << 20;  // of all values that come to be, freed or not
  std::size_t steps = 5'000'000;  // nodes evaluated, values visited, and 64 bytes looked at
  int depth = 600;                // nodes in evaluation at once: recursion, some 300 KB of stack
};

// Counts what a rendering takes against its limits; ValueError when one is reached. Whatever walks
// values or texts is given it, since a small template can make large ones of shared parts.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  // For what a program asks for itself.
  static Budget unbounded() {
    constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)();
    return Budget({.output_bytes = most, .made_bytes = most, .steps = most});
  }
  // For variables of that many bytes.
  void grow(std::size_t input_bytes) {
    limits_.made_bytes += input_bytes * bytes_of_step;
    limits_.steps += input_bytes;
  }

  void step(std::size_t count = 1) {
    if (count > limits_.steps || (steps_ += count) > limits_.steps)
      exceeded("steps", limits_.steps);
  }
  // Before that many bytes are read character by character.
  void read(std::size_t bytes) {
    constexpr std::size_t slower = 8;  // than to compare or search them
    step(bytes / (bytes_of_step / slower));
    scan(bytes % (bytes_of_step / slower) * slower);
  }
  // Before that many bytes are compared or searched.
  void scan(std::size_t bytes) {
    scanned_ += bytes % bytes_of_step;
    step(bytes / bytes_of_step + scanned_ / bytes_of_step);
    scanned_ %= bytes_of_step;
  }
  // Before a value of that many bytes is made, or a copy of that text.
  void make(std::size_t bytes) {
    constexpr std::size_t what_holds_it = 160;
    extend(bytes);
    extend(what_holds_it);
  }
  void make(const TaggedText& text) {
    make(text.size());
    extend(text.runs() * bytes_of_run);
  }
  void make_items(std::size_t count);
  // Before a value in the making gets that many bytes more.
  void extend(std::size_t bytes) {
    if (bytes > limits_.made_bytes || (made_ += bytes) > limits_.made_bytes)
      exceeded("bytes of values", limits_.made_bytes);
  }
  // Appends to a text in the making.
  void append(TaggedText& out, const TaggedText& part) {
    const std::size_t runs = out.runs();
    extend(part.size());
    out.append(part);
    extend((out.runs() - runs) * bytes_of_run);
  }
  void append(TaggedText& out, std::string_view part, bool user) {
    const std::size_t runs = out.runs();
    extend(part.size());
    out.append(part, user);
    extend((out.runs() - runs) * bytes_of_run);
  }
  const Limits& limits() const { return limits_; }
  [[noreturn]] static void exceeded(std::string_view what, std::size_t most);

  // Of a stretch of one origin, here and in the segments that a text becomes in the end.
  static constexpr std::size_t bytes_of_run = 64;

 private:
  static constexpr std::size_t bytes_of_step = 64;

  Limits limits_;
  std::size_t steps_ = 0, scanned_ = 0, made_ = 0;
};

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "budget.inl"
#endif
