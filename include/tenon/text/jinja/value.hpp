#pragma once
// The values of templates: what JSON has, and what only exists while a template runs.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "budget.hpp"
#include "tagged_text.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

class Value;
class List;
class Dict;
struct Object;
namespace detail {
struct Release;
}

struct Undefined {
  std::shared_ptr<const std::string> what;  // why there is no value, for messages
};

// One value with Python's meaning. Copies share lists and dicts, which nothing changes once they
// are made (as in Hugging Face's sandbox), so a value may be used from any number of threads; the
// exception are namespaces and loops, which live within one rendering.
class Value {
 public:
  enum class Kind { undefined, none, boolean, integer, real, text, list, dict, object };

  Value() = default;  // none
  Value(std::nullptr_t) {}
  Value(bool flag) : data_(flag) {}
  Value(int n) : data_(std::int64_t{n}) {}
  Value(std::int64_t n) : data_(n) {}
  Value(double x) : data_(x) {}
  // Text of the program or the template; user_text() marks what is not.
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(TaggedText text);
  Value(List list);
  Value(Dict dict);
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  static Value undefined(std::string what);

  // A JSON text (RFC 8259), bounded: at most 100 levels deep. RequestError with the byte where it
  // is no JSON. Numbers without fraction or exponent that fit 64 bits are integers.
  static Value parse_json(std::string_view text);
  // As Python's json.dumps(value, ensure_ascii=False) writes it. RequestError for a value that JSON
  // does not have, or more than 100 levels.
  std::string to_json() const;

  Kind kind() const;
  bool is_undefined() const { return kind() == Kind::undefined; }
  bool is_none() const { return kind() == Kind::none; }
  bool is_text() const { return kind() == Kind::text; }
  bool is_list() const { return kind() == Kind::list; }
  bool is_dict() const { return kind() == Kind::dict; }

  // The content; each only for its kind.
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return std::get<std::int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  const TaggedText& text() const { return *std::get<std::shared_ptr<const TaggedText>>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  const std::shared_ptr<Object>& object() const { return std::get<std::shared_ptr<Object>>(data_); }
  const std::string& why_undefined() const { return *std::get<Undefined>(data_).what; }

  // A number as Python counts True and False as 1 and 0; nothing for other kinds.
  std::optional<std::int64_t> as_integer() const;
  std::optional<double> as_real() const;

 private:
  friend struct detail::Release;
  std::variant<std::monostate, Undefined, bool, std::int64_t, double,
               std::shared_ptr<const TaggedText>, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, std::shared_ptr<Object>>
      data_;
};

// The same value with every string in it marked as a user's, keys included. RequestError for more
// than 100 levels.
Value user_text(const Value& value);

// How a list came to be decides what Python lets one do with it.
enum class ListKind { list, tuple, generator, view };

class List {
 public:
  List() = default;
  explicit List(std::vector<Value> items, ListKind kind = ListKind::list)
      : items_(std::move(items)), kind_(kind) {}
  List(List&&) = default;
  List& operator=(List&&) = default;
  ~List();

  const std::vector<Value>& items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  ListKind kind() const { return kind_; }
  // A list or a tuple: has a length and places.
  bool indexed() const { return kind_ == ListKind::list || kind_ == ListKind::tuple; }
  // Whether a generator gave its items already; marks it so.
  bool exhaust() const { return std::exchange(exhausted_, kind_ == ListKind::generator); }

 private:
  friend struct detail::Release;
  std::vector<Value> items_;
  ListKind kind_ = ListKind::list;
  mutable bool exhausted_ = false;
};

// Keys in the order of insertion. 1, 1.0 and True are one key, as in Python.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  Dict() = default;
  // Of equal keys the last value counts.
  Dict(std::initializer_list<Entry> entries);
  Dict(Dict&&) = default;
  Dict& operator=(Dict&&) = default;
  ~Dict();

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  // ValueError for a list or dict as key.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const Value* find(const char* key) const { return find(std::string_view(key)); }
  void set(Value key, Value value);
  Dict copy() const;
  // What a copy takes, in bytes; O(size).
  std::size_t copy_bytes() const;

 private:
  friend struct detail::Release;
  static std::string spelled(const Value& key);
  static std::string spelled(std::string_view key);

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> places_;  // ordered: no choice of keys makes it slow
};

// What only exists while a template runs. `macro` is a place in the interpreter's table.
struct Object {
  enum class Type { space, loop, macro, function, method };
  Type type = Type::space;
  Dict fields;       // of a namespace
  std::string name;  // of a macro, function or method
  Value self;        // of a method
  int macro = -1;    // of a macro
  // Of a loop: all items, and which is the current one.
  std::shared_ptr<const List> items;
  std::size_t index = 0;
  int depth = 1;
  std::vector<Value> changed;  // the last arguments of loop.changed()
};

// Values deeper than this are an error wherever all of a value is walked.
inline constexpr int most_levels = 100;

// What json.dumps takes. Without `indent` everything is on one line.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  int indent = -1;                                      // spaces for each level; -1: one line
  std::string item_separator = {}, key_separator = {};  // empty: Python's default
};

// Strings keep the origin of their bytes, escaped or not. ValueError for a value that JSON does not
// have (undefined, a macro), or too many levels.
TaggedText write_json(const Value& value, const JsonStyle& style, Budget& budget);
// A whole JSON text (RFC 8259); what it holds is of one origin: a user's when any byte of it is.
// ValueError, which names the byte, when it is none.
Value read_json(const TaggedText& text, Budget& budget);

// str(value), "" for undefined, and repr(value) of Python.
TaggedText to_text(const Value& value, Budget& budget);
TaggedText repr(const Value& value, Budget& budget);
// Appends str(value).
void append_text(const Value& value, TaggedText& out, Budget& budget);
// str(value), which is no copy where the value is text. Lives as long as the value.
class TextOf {
 public:
  TextOf(const Value& value, Budget& budget) {
    if (value.is_text()) {
      text_ = &value.text();
    } else {
      made_ = to_text(value, budget);
    }
  }
  TextOf(const TextOf&) = delete;
  TextOf& operator=(const TextOf&) = delete;
  const TaggedText& operator*() const { return *text_; }
  const TaggedText* operator->() const { return text_; }

 private:
  TaggedText made_;
  const TaggedText* text_ = &made_;
};
// The shortest digits that give the number back, as Python writes them: 1.0, 1e-07, inf.
std::string real_text(double x);

// The number of characters (bytes that are no UTF-8 count one each), and the byte where character n
// starts; n is at most the number of characters.
std::size_t characters(std::string_view text);
std::size_t byte_of(std::string_view text, std::size_t n);
// The bytes of the first character; text is not empty.
std::size_t character_bytes(std::string_view text);

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "json.inl"
#include "python_text.inl"
#include "value.inl"
#endif
