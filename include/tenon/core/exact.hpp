#pragma once
// Counts that are exact or an error: bytes, values and operations of models of any size.
#include <numeric>

#include "error.hpp"
#include "types.hpp"

namespace tenon::inline TENON_ABI {

// The product of all. CapacityError when it is not below 2^63; in a constant expression that is a
// compile error.
constexpr Dim exact_product(Dim a, Dim b) {
  Dim result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    fail<CapacityError>("a count of bytes or operations must be below 2^63, ", a, " x ", b,
                        " is not; ask for smaller sizes");
  }
  return result;
}
template <class... Rest>
constexpr Dim exact_product(Dim a, Dim b, Rest... rest) {
  return exact_product(exact_product(a, b), static_cast<Dim>(rest)...);
}

// The sum of all. CapacityError when it is not below 2^63.
constexpr Dim exact_sum(Dim a, Dim b) {
  Dim result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    fail<CapacityError>("a count of bytes or operations must be below 2^63, ", a, " + ", b,
                        " is not; ask for smaller sizes");
  }
  return result;
}
template <class... Rest>
constexpr Dim exact_sum(Dim a, Dim b, Rest... rest) {
  return exact_sum(exact_sum(a, b), static_cast<Dim>(rest)...);
}

// A quotient in lowest terms, so that equal ones compare equal. The divisor is positive.
struct Ratio {
  Dim over = 0, under = 1;

  constexpr Ratio(Dim a, Dim b = 1) {
    const Dim common = std::gcd(a, b);
    over = common == 0 ? 0 : a / common;
    under = common == 0 ? 1 : b / common;
  }
  constexpr bool operator==(const Ratio&) const = default;
  constexpr double value() const { return static_cast<double>(over) / static_cast<double>(under); }
};

}  // namespace tenon::inline TENON_ABI
