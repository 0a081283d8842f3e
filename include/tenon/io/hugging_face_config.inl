#pragma once
// A JSON object of a Hugging Face checkpoint, read strictly: every key must be asked for, or be one
// that is known to change no result.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/json_value.hpp"
#include "../core/types.hpp"

namespace tenon::inline TENON_ABI::detail {

class JsonConfig {
 public:
  // `origin` names the object in messages: "folder/config.json".
  JsonConfig(JsonValue object, std::string origin)
      : object_(std::move(object)), origin_(std::move(origin)) {
    if (object_.object() == nullptr) {
      fail<LoadError>(origin_, ": must be a JSON object, it is ", object_.type_name(),
                      "; the file is damaged, download it again");
    }
  }
  const std::string& origin() const { return origin_; }
  const JsonValue& json() const { return object_; }

  // Whether the key is there and not null. This, and every function that takes a key, marks it as
  // understood.
  bool has(std::string_view key) { return find(key) != nullptr; }
  // Keys that are read elsewhere, or whose value does not matter here.
  void accept(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) find(key);
  }

  double number(std::string_view key) { return to_number(key, need(key, "a number")); }
  double number_or(std::string_view key, double otherwise) {
    const JsonValue* value = find(key);
    return value == nullptr ? otherwise : to_number(key, *value);
  }
  // A number above 0, as a float too.
  double positive(std::string_view key) { return above(key, number(key), 0); }
  double positive_or(std::string_view key, double otherwise) {
    return above(key, number_or(key, otherwise), 0);
  }
  // What was read for the key must be above `least` and finite, as a float too.
  double above(std::string_view key, double value, double least) const {
    const auto stored = static_cast<float>(value);
    if (!(value > least && stored > 0 && std::isfinite(stored)))
      damaged(key, least == 0 ? "a positive number" : message("a number above ", least), value);
    return value;
  }
  [[noreturn]] void damaged(std::string_view key, std::string_view wanted, double found) const {
    fail<LoadError>(origin_, ": key \"", key, "\" must be ", wanted, ", it is ", found,
                    "; the file is damaged, download it again");
  }
  // A whole number from 1 to 2^31 - 1.
  Dim size(std::string_view key) { return to_size(key, need(key, "a whole number")); }
  Dim size_or(std::string_view key, Dim otherwise) {
    const JsonValue* value = find(key);
    return value == nullptr ? otherwise : to_size(key, *value);
  }
  // A whole number from 0 to 2^31 - 1.
  Dim count_or(std::string_view key, Dim otherwise) {
    const JsonValue* value = find(key);
    if (value == nullptr) return otherwise;
    return *value == 0 ? 0 : to_size(key, *value);
  }
  bool flag_or(std::string_view key, bool otherwise) {
    const JsonValue* value = find(key);
    if (value == nullptr) return otherwise;
    if (value->flag() == nullptr) wrong(key, "true or false", *value);
    return *value->flag();
  }
  std::string text_or(std::string_view key, std::string_view otherwise) {
    const JsonValue* value = find(key);
    if (value == nullptr) return std::string(otherwise);
    if (value->text() == nullptr) wrong(key, "a text", *value);
    return *value->text();
  }
  std::vector<float> floats(std::string_view key) {
    const JsonValue& value = need(key, "a list of numbers");
    if (value.list() == nullptr) wrong(key, "a list of numbers", value);
    std::vector<float> numbers;
    for (const JsonValue& item : *value.list()) {
      numbers.push_back(static_cast<float>(to_number(key, item)));
    }
    return numbers;
  }
  // One whole number or a list of some; none when the key is missing.
  std::vector<std::int64_t> ids(std::string_view key) {
    const JsonValue* value = find(key);
    if (value == nullptr) return {};
    const std::span<const JsonValue> list =
        value->list() == nullptr ? std::span(value, 1) : std::span(*value->list());
    std::vector<std::int64_t> ids;
    for (const JsonValue& item : list) {
      const double id = item.number();  // NaN when it is none
      if (!(id >= 0 && id <= 2147483647.0) || id != std::floor(id)) {
        wrong(key, "a token id or a list of them", item);
      }
      ids.push_back(static_cast<std::int64_t>(id));
    }
    return ids;
  }
  JsonConfig object(std::string_view key) {
    return JsonConfig(need(key, "an object"), message(origin_, ": ", key));
  }

  // The key must have one of these values, or be missing when the first of them is the default.
  void must_be(std::string_view key, std::initializer_list<JsonValue> values) {
    const JsonValue* value = find(key);
    if (value == nullptr || std::find(values.begin(), values.end(), *value) != values.end()) return;
    std::string all;
    for (const JsonValue& v : values) all += (all.empty() ? "" : " or ") + v.dump();
    wrong(key, all, *value);
  }
  [[noreturn]] void wrong(std::string_view key, std::string_view wanted,
                          const JsonValue& found) const {
    fail<LoadError>(origin_, ": key \"", key, "\" must be ", wanted, ", it is ",
                    printable(found.dump()),
                    "; this version of tenon does not compute what it asks for");
  }

  // Keys that nothing asked for: those of `harmless`, null, false and empty ones are returned,
  // another one is a LoadError.
  std::vector<std::string> refuse_unread(std::initializer_list<std::string_view> harmless) const {
    std::vector<std::string> ignored;
    for (const auto& [key, value] : *object_.object()) {
      if (read_.contains(key)) continue;
      const bool unused = value.is_null() || value == false || value == JsonValue::List() ||
                          value == JsonValue::Object();
      const bool known = std::find(harmless.begin(), harmless.end(), key) != harmless.end();
      if (!unused && !known && !key.starts_with('_')) {
        fail<LoadError>(origin_, ": key \"", printable(key), "\" is set to ",
                        printable(value.dump()),
                        ", which must be understood because it may change the result, it is not; "
                        "remove it if it changes nothing, or use a version of tenon that knows it");
      }
      ignored.push_back(key);
    }
    return ignored;
  }

 private:
  const JsonValue* find(std::string_view key) {
    const JsonValue* value = object_.find(key);
    if (value == nullptr) return nullptr;
    read_.emplace(key);
    return value->is_null() ? nullptr : value;
  }
  const JsonValue& need(std::string_view key, std::string_view what) {
    if (const JsonValue* value = find(key)) return *value;
    fail<LoadError>(origin_, ": key \"", key, "\" must be there and be ", what,
                    ", it is missing; download the checkpoint again");
  }
  double to_number(std::string_view key, const JsonValue& value) const {
    if (!value.is_number()) wrong(key, "a number", value);
    const double x = value.number();
    if (!std::isfinite(x)) wrong(key, "a finite number", value);
    return x;
  }
  Dim to_size(std::string_view key, const JsonValue& value) const {
    const double x = value.number();  // NaN when it is none
    if (!(x >= 1 && x <= 2147483647.0) || x != std::floor(x)) {
      wrong(key, "a whole number from 1 to 2147483647", value);
    }
    return static_cast<Dim>(x);
  }

  JsonValue object_;
  std::string origin_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace tenon::inline TENON_ABI::detail
