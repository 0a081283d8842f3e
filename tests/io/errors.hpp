#pragma once
// Checking what errors say.
#include <initializer_list>
#include <string>
#include <string_view>

namespace test {

// What a call throws as an E, and "" when it throws nothing. Other exceptions pass.
template <class E, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

// "" when the message holds all parts, else a sentence that a failing CHECK shows.
inline std::string missing(const std::string& message,
                           std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return "\"" + std::string(part) + "\" is not in \"" + message + "\"";
    }
  }
  return {};
}

}  // namespace test
