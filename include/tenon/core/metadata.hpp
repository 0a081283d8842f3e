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

  std::string type_name() const;
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
  const MetaValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // False, and no change, when the key is already there.
  bool insert(std::string key, MetaValue value);
  // Inserts or replaces.
  void set(std::string key, MetaValue value);
  void set(std::string key, std::string_view text);
  void set(std::string key, const char* text) { set(std::move(key), std::string_view(text)); }
  void set(std::string key, bool flag);
  void set(std::string key, std::uint32_t n);
  void set(std::string key, float x);

  // Readers of one value. The plain forms throw when the key is missing, the _or forms return the
  // fallback; both throw when the type does not fit.
  const std::string& text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  bool flag(std::string_view key) const { return as<bool>(key, need(key, "a bool"), "a bool"); }
  bool flag_or(std::string_view key, bool fallback) const;
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  // Readers of arrays.
  const std::vector<std::string>& texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  const std::vector<double>& floats(std::string_view key) const;

 private:
  const MetaValue& need(std::string_view key, std::string_view what) const;
  [[noreturn]] static void wrong_type(std::string_view key, const MetaValue& value,
                                      std::string_view what);
  template <class T>
  static const T& as(std::string_view key, const MetaValue& value, std::string_view what) {
    if (const T* data = std::get_if<T>(&value.data)) return *data;
    wrong_type(key, value, what);
  }

  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "metadata.inl"
#endif
