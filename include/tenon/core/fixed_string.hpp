#pragma once
// A string as a template argument.
#include <cstddef>
#include <string_view>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

template <std::size_t N>
struct FixedString {
  char text[N]{};
  consteval FixedString(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

}  // namespace tenon::inline TENON_ABI
