#pragma once
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "error.hpp"
#include "json_escapes.hpp"
#include "json_scanner.hpp"
#include "json_value.hpp"
#include "utf8.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE JsonValue JsonValue::parse(std::string_view text, std::string_view origin) {
  if (!is_utf8(text)) {
    fail<LoadError>(origin, ": must be JSON in UTF-8, its ", text.size(),
                    " bytes are not UTF-8; the file is damaged, download or convert it again");
  }
  JsonScanner scanner(text, origin);
  JsonValue value = take(scanner, 0);
  scanner.end();
  return value;
}

TENON_INLINE JsonValue JsonValue::take(JsonScanner& scanner, int depth) {
  constexpr int deepest = 128;
  constexpr std::string_view what = "a value";
  const char first = scanner.peek();
  if ((first == '{' || first == '[') && depth == deepest) {
    scanner.refuse("values nested at most 128 deep");
  }
  if (first == '{') {
    scanner.expect('{', what);
    Object object;
    while (!scanner.take('}')) {
      if (!object.empty()) scanner.expect(',', "a comma or a closing bracket");
      std::string key(scanner.string("a key"));
      scanner.expect(':', "a colon");
      object.insert_or_assign(std::move(key), take(scanner, depth + 1));
    }
    return object;
  }
  if (first == '[') {
    scanner.expect('[', what);
    List list;
    while (!scanner.take(']')) {
      if (!list.empty()) scanner.expect(',', "a comma or a closing bracket");
      list.push_back(take(scanner, depth + 1));
    }
    return list;
  }
  if (first == '"') return std::string(scanner.string(what));
  JsonValue value;
  if (scanner.word("true")) {
    value.data_ = true;
  } else if (scanner.word("false")) {
    value.data_ = false;
  } else if (!scanner.word("null")) {
    value.data_ = Number{std::string(scanner.number(what))};
  }
  return value;
}

TENON_INLINE double JsonValue::number() const {
  const Number* number = std::get_if<Number>(&data_);
  if (number == nullptr) return std::numeric_limits<double>::quiet_NaN();
  const std::string& digits = number->digits;
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc::result_out_of_range) return value;
  const bool tiny =
      digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos;
  return tiny ? 0 : std::numeric_limits<double>::infinity();
}

TENON_INLINE std::optional<std::int64_t> JsonValue::integer() const {
  const Number* number = std::get_if<Number>(&data_);
  if (number == nullptr) return {};
  const char* end = number->digits.data() + number->digits.size();
  std::int64_t value = 0;
  const auto read = std::from_chars(number->digits.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return value;
}

TENON_INLINE void JsonValue::set_number(double value) {
  if (!std::isfinite(value)) return;
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // readers may ask for a float
  data_ = Number{std::move(text)};
}

TENON_INLINE std::string_view JsonValue::type_name() const {
  constexpr std::string_view names[] = {"null", "boolean", "number", "string", "array", "object"};
  return names[data_.index()];
}

TENON_INLINE const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto at = members->find(key);
  return at == members->end() ? nullptr : &at->second;
}

TENON_INLINE JsonValue& JsonValue::operator[](std::string_view key) {
  if (is_null()) data_ = Object();
  return std::get<Object>(data_)[std::string(key)];
}

TENON_INLINE void JsonValue::append_to(std::string& out, int spaces, int depth) const {
  const auto line = [&](int level) {
    if (spaces == 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(spaces) * static_cast<std::size_t>(level), ' ');
  };
  if (const Number* number = std::get_if<Number>(&data_)) {
    out += number->digits;
  } else if (text() != nullptr) {
    out += '"' + json_escaped(*text()) + '"';
  } else if (flag() != nullptr) {
    out += *flag() ? "true" : "false";
  } else if (list() != nullptr) {
    out += '[';
    for (const JsonValue& item : *list()) {
      if (&item != list()->data()) out += ',';
      line(depth + 1);
      item.append_to(out, spaces, depth + 1);
    }
    if (!list()->empty()) line(depth);
    out += ']';
  } else if (object() != nullptr) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : *object()) {
      if (!first) out += ',';
      first = false;
      line(depth + 1);
      out += '"' + json_escaped(key) + (spaces == 0 ? "\":" : "\": ");
      value.append_to(out, spaces, depth + 1);
    }
    if (!first) line(depth);
    out += '}';
  } else {
    out += "null";
  }
}

TENON_INLINE std::string JsonValue::dump(int spaces) const {
  std::string out;
  append_to(out, spaces, 0);
  return out;
}

TENON_INLINE bool JsonValue::equals(const JsonValue& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_number()) return number() == other.number();
  if (text() != nullptr) return *text() == *other.text();
  if (flag() != nullptr) return *flag() == *other.flag();
  if (list() != nullptr) return *list() == *other.list();
  return object() == nullptr || *object() == *other.object();
}

}  // namespace tenon::inline TENON_ABI
