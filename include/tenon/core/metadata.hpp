#pragma once
// Typed key-value metadata as checkpoint files carry it. io/ fills it; text/ and model/ read it.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "error.hpp"

namespace tenon::inline TENON_ABI {

// The value types of the GGUF container, with its numbering.
enum class MetaType : std::int32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};
constexpr std::string_view name_of(MetaType type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(names) ? names[i] : "unknown";
}
constexpr bool is_unsigned(MetaType t) {
  return t == MetaType::u8 || t == MetaType::u16 || t == MetaType::u32 || t == MetaType::u64;
}
constexpr bool is_signed(MetaType t) {
  return t == MetaType::i8 || t == MetaType::i16 || t == MetaType::i32 || t == MetaType::i64;
}
constexpr bool is_float(MetaType t) {
  return t == MetaType::f32 || t == MetaType::f64;
}

// One value, widened for reading; `type` (and `item`, of an array) keep what the file stores.
struct MetaValue {
  using Data =
      std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<bool>,
                   std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>,
                   std::vector<std::string>>;
  MetaType type = MetaType::boolean;
  MetaType item = MetaType::boolean;  // element type when `type` is array
  Data data = false;

  std::string type_name() const {
    return type == MetaType::array ? message("array of ", name_of(item))
                                   : std::string(name_of(type));
  }
};

// Insertion-ordered map with unique keys. Reading a key under the wrong type is a LoadError that
// names the key, the type it needs and the type the file has.
class Metadata {
 public:
  struct Entry {
    std::string key;
    MetaValue value;
  };

  const std::vector<Entry>& entries() const { return entries_; }
  const MetaValue* find(std::string_view key) const {
    const auto at = index_.find(std::string(key));
    return at == index_.end() ? nullptr : &entries_[at->second].value;
  }
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // False, and no change, when the key is already there.
  bool insert(std::string key, MetaValue value) {
    if (!index_.emplace(key, entries_.size()).second) return false;
    entries_.push_back({std::move(key), std::move(value)});
    return true;
  }
  // Inserts or replaces.
  void set(std::string key, MetaValue value) {
    if (const auto at = index_.find(key); at != index_.end()) {
      entries_[at->second].value = std::move(value);
    } else {
      insert(std::move(key), std::move(value));
    }
  }
  void set(std::string key, std::string_view text) {
    set(std::move(key), MetaValue{MetaType::string, {}, std::string(text)});
  }
  void set(std::string key, const char* text) { set(std::move(key), std::string_view(text)); }
  void set(std::string key, bool flag) {
    set(std::move(key), MetaValue{MetaType::boolean, {}, flag});
  }
  void set(std::string key, std::uint32_t n) {
    set(std::move(key), MetaValue{MetaType::u32, {}, std::uint64_t{n}});
  }
  void set(std::string key, float x) {
    set(std::move(key), MetaValue{MetaType::f32, {}, static_cast<double>(x)});
  }

  // Readers of one value. The plain forms throw when the key is missing, the _or forms return the
  // fallback; both throw when the type does not fit.
  const std::string& text(std::string_view key) const {
    return as<std::string>(key, need(key, "a string"), "a string");
  }
  std::string text_or(std::string_view key, std::string_view fallback) const {
    return contains(key) ? text(key) : std::string(fallback);
  }
  bool flag(std::string_view key) const { return as<bool>(key, need(key, "a bool"), "a bool"); }
  bool flag_or(std::string_view key, bool fallback) const {
    return contains(key) ? flag(key) : fallback;
  }
  std::int64_t integer(std::string_view key) const {
    const MetaValue& value = need(key, "an integer");
    if (const auto* u = std::get_if<std::uint64_t>(&value.data)) {
      if (*u <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(*u);
      fail<LoadError>("metadata key \"", printable(key), "\" is ", *u,
                      ", which is too large to be meant; the file is damaged or hostile");
    }
    return as<std::int64_t>(key, value, "an integer");
  }
  double number(std::string_view key) const {
    const MetaValue& value = need(key, "a number");
    if (const auto* x = std::get_if<double>(&value.data)) return *x;
    if (std::holds_alternative<std::uint64_t>(value.data) ||
        std::holds_alternative<std::int64_t>(value.data)) {
      return static_cast<double>(integer(key));
    }
    wrong_type(key, value, "a number");
  }
  // Readers of arrays.
  const std::vector<std::string>& texts(std::string_view key) const {
    return as<std::vector<std::string>>(key, need(key, "an array of strings"),
                                        "an array of strings");
  }
  std::vector<std::int64_t> integers(std::string_view key) const {
    const MetaValue& value = need(key, "an array of integers");
    if (const auto* u = std::get_if<std::vector<std::uint64_t>>(&value.data)) {
      for (const std::uint64_t x : *u) {
        if (x > static_cast<std::uint64_t>(INT64_MAX)) {
          fail<LoadError>("metadata array \"", printable(key), "\" holds ", x,
                          ", which is too large to be meant; the file is damaged or hostile");
        }
      }
      return {u->begin(), u->end()};
    }
    return as<std::vector<std::int64_t>>(key, value, "an array of integers");
  }
  const std::vector<double>& floats(std::string_view key) const {
    return as<std::vector<double>>(key, need(key, "an array of floats"), "an array of floats");
  }

 private:
  const MetaValue& need(std::string_view key, std::string_view what) const {
    if (const MetaValue* value = find(key)) return *value;
    fail<LoadError>("metadata key \"", printable(key), "\" is missing; it must be ", what,
                    "; convert the checkpoint again with a current converter");
  }
  [[noreturn]] static void wrong_type(std::string_view key, const MetaValue& value,
                                      std::string_view what) {
    fail<LoadError>("metadata key \"", printable(key), "\" must be ", what, ", the file has type ",
                    value.type_name(), "; convert the checkpoint again with a current converter");
  }
  template <class T>
  static const T& as(std::string_view key, const MetaValue& value, std::string_view what) {
    if (const T* data = std::get_if<T>(&value.data)) return *data;
    wrong_type(key, value, what);
  }

  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace tenon::inline TENON_ABI
