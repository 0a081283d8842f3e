#pragma once
// Prints JSON, value by value. What nests is up to the caller; commas are not.
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <tenon/core/json_escapes.hpp>
#include <tenon/core/utf8.hpp>
#include <type_traits>

namespace bench {

class Json {
 public:
  // An object or array: as a member when it has a key.
  Json& begin(char bracket, std::string_view key = {}) {
    lead(key);
    text_ += bracket;
    first_ = true;
    return *this;
  }
  Json& end(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  Json& put(std::string_view key, std::string_view value) {
    lead(key);
    quote(value);
    return *this;
  }
  Json& put(std::string_view key, const char* value) { return put(key, std::string_view(value)); }
  Json& put(std::string_view key, bool value) {
    lead(key);
    text_ += value ? "true" : "false";
    return *this;
  }
  // Whole numbers in full, others to six digits, and what is no number as null.
  template <class T>
  requires std::is_arithmetic_v<T> Json& put(std::string_view key, T value) {
    lead(key);
    const auto number = static_cast<double>(value);
    char digits[32];
    char* end = digits;
    if (!std::isfinite(number)) {
      text_ += "null";
    } else if (number == std::floor(number) && std::fabs(number) < 0x1p53) {
      end = std::to_chars(digits, digits + 32, static_cast<long long>(number)).ptr;
    } else {
      end = std::to_chars(digits, digits + 32, number, std::chars_format::general, 6).ptr;
    }
    text_.append(digits, end);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void lead(std::string_view key) {
    if (!first_) text_ += ", ";
    first_ = false;
    if (key.empty()) return;
    quote(key);
    text_ += ": ";
  }
  void quote(std::string_view value) {
    ((text_ += '"') += tenon::json_escaped(tenon::to_utf8(value), true)) += '"';
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace bench
