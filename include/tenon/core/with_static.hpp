#pragma once
// The gate from a run-time integer to a compile-time one.
#include <type_traits>

#include "types.hpp"

namespace tenon::inline TENON_ABI {

// Calls f(std::integral_constant<Dim, n>{}) when n is one of Known; false, without a call,
// otherwise.
template <Dim... Known, class F>
constexpr bool with_static(Dim n, F&& f) {
  return ((n == Known && (static_cast<void>(f(std::integral_constant<Dim, Known>{})), true)) ||
          ...);
}

}  // namespace tenon::inline TENON_ABI
