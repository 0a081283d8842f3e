#pragma once
// JSON documents as trees, for files whose form is not fixed.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

class JsonScanner;

// A value of RFC 8259. A number keeps the digits it was written with, an object its keys in the
// order of their bytes. Two numbers are equal when they are as doubles.
class JsonValue {
 public:
  using List = std::vector<JsonValue>;
  using Object = std::map<std::string, JsonValue, std::less<>>;

  // The document `text`; LoadError, naming `origin` and the byte, when it is not JSON in UTF-8 or
  // nested more than 128 deep. Of a key that is there twice the last value counts.
  static JsonValue parse(std::string_view text, std::string_view origin);

  JsonValue() = default;  // null
  JsonValue(std::string text) : data_(std::move(text)) {}
  JsonValue(std::string_view text) : data_(std::string(text)) {}
  JsonValue(const char* text) : data_(std::string(text)) {}
  JsonValue(List list) : data_(std::move(list)) {}
  JsonValue(Object object) : data_(std::move(object)) {}
  // A number that is not finite becomes null, as JSON has none.
  template <class T>
  requires std::is_arithmetic_v<T> JsonValue(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      data_ = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      set_number(static_cast<double>(value));
    } else {
      data_ = Number{std::to_string(value)};
    }
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_number() const { return std::holds_alternative<Number>(data_); }
  // The value as what it is, or null when it is something else.
  const bool* flag() const { return std::get_if<bool>(&data_); }
  const std::string* text() const { return std::get_if<std::string>(&data_); }
  const List* list() const { return std::get_if<List>(&data_); }
  const Object* object() const { return std::get_if<Object>(&data_); }
  Object* object() { return std::get_if<Object>(&data_); }
  // The number, infinite beyond the range of a double; NaN when it is no number.
  double number() const;
  // The number when it is written as an integer, without fraction or exponent, of 64 bits.
  std::optional<std::int64_t> integer() const;
  // "null", "boolean", "number", "string", "array" or "object".
  std::string_view type_name() const;

  // The value of that key of an object; null when it is missing, or this is no object.
  const JsonValue* find(std::string_view key) const;
  // The value of that key, put there as null when it is missing. A null becomes an object; anything
  // else must be one.
  JsonValue& operator[](std::string_view key);

  // The text; with `spaces` to indent each level by, on several lines.
  std::string dump(int spaces = 0) const;

  friend bool operator==(const JsonValue& a, const JsonValue& b) { return a.equals(b); }

 private:
  struct Number {
    std::string digits;
  };
  static JsonValue take(JsonScanner& scanner, int depth);
  void set_number(double value);
  void append_to(std::string& out, int spaces, int depth) const;
  bool equals(const JsonValue& other) const;

  std::variant<std::monostate, bool, Number, std::string, List, Object> data_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "json_value.inl"
#endif
