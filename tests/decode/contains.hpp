#pragma once
// The matcher for a part of a message, which Catch2 3 renamed.
#include <string>

#include "catch.hpp"

inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}
