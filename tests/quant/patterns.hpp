#pragma once
// Values and bytes that are the same on every machine, and short names for what becomes of them, so
// that a test can hold what the reference implementation makes of much data.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace patterns {

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 2654435761u + 1) {}
  // An integer in [0, below).
  int next(int below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(below));
  }
  // An integer around 0, roughly normal with deviation 2^15.
  int bell() {
    int sum = 0;
    for (int i = 0; i < 3; ++i) sum += next(1 << 16) - (1 << 15);
    return sum;
  }

 private:
  std::uint64_t state_;
};

// Kinds of weights: integers times powers of two, so that no rounding is involved.
inline constexpr const char* names[] = {
    "normal",          "of all magnitudes", "positive",  "negative", "with zeros",
    "nearly constant", "with outliers",     "multiples", "tiny",     "constant in groups"};
inline constexpr int kinds = static_cast<int>(std::size(names));

inline std::vector<float> values(int kind, int n) {
  Numbers numbers(static_cast<std::uint64_t>(kind) + 1);
  std::vector<float> all(static_cast<std::size_t>(n));
  int level = 0;
  for (int i = 0; i < n; ++i) {
    int value = numbers.bell(), exponent = -18;
    if (i % 16 == 0) level = numbers.bell();
    if (kind == 1) exponent -= numbers.next(20);
    if (kind == 2) value = std::abs(value);
    if (kind == 3) value = -std::abs(value);
    if (kind == 4 && (i / 16 % 2 == 1 || i % 5 == 0)) value = 0;
    if (kind == 5) value = -(1 << 23) + i / 32 * 5000 + numbers.next(5), exponent = -25;
    if (kind == 6 && numbers.next(64) == 0) exponent += 5;
    if (kind == 7) value = (value >> 12) * 4096;
    if (kind == 8) exponent -= 12;
    if (kind == 9) value = level;
    all[static_cast<std::size_t>(i)] = std::ldexp(static_cast<float>(value), exponent);
  }
  return all;
}

inline std::vector<std::byte> bytes(std::size_t n) {
  Numbers numbers(99);
  std::vector<std::byte> all(n);
  for (std::byte& b : all) b = static_cast<std::byte>(numbers.next(256));
  return all;
}

// FNV-1a of 32 bits.
inline std::uint32_t name_of(std::span<const std::byte> bytes) {
  std::uint32_t hash = 2166136261u;
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint32_t>(b)) * 16777619u;
  return hash;
}
// The same of floats, in which all NaN are one.
inline std::uint32_t name_of(std::vector<float> values) {
  for (float& value : values) {
    if (value != value) value = std::bit_cast<float>(0x7fc00000u);
    if (value == 0) value = 0;  // one zero
  }
  return name_of(std::as_bytes(std::span(values)));
}

}  // namespace patterns
