#pragma once
#include <cmath>

#include "../../core/error.hpp"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// Here because the size of a value is known here.
TENON_INLINE void Budget::make_items(std::size_t count) {
  const std::size_t most = limits_.made_bytes;
  if (count > most / sizeof(Value)) exceeded("bytes of values", most);
  make(count * sizeof(Value));
}

namespace detail {

// Lets go of values without recursion: a list in a list in a list may be as deep as memory allows.
// What nobody else holds is emptied before it is destroyed.
struct Release {
  static void all(std::vector<Value>& pending) {
    while (!pending.empty()) {
      const Value value = std::move(pending.back());
      pending.pop_back();
      if (value.is_list()) {
        const auto& list = std::get<std::shared_ptr<const List>>(value.data_);
        if (list.use_count() == 1) take(const_cast<List&>(*list).items_, pending);
      } else if (value.is_dict()) {
        const auto& dict = std::get<std::shared_ptr<const Dict>>(value.data_);
        if (dict.use_count() == 1) take(const_cast<Dict&>(*dict), pending);
      } else if (value.kind() == Value::Kind::object && value.object().use_count() == 1) {
        Object& object = *value.object();
        take(object.fields, pending);
        take(object.changed, pending);
        pending.push_back(std::exchange(object.self, {}));
        if (object.items && object.items.use_count() == 1) {
          take(const_cast<List&>(*object.items).items_, pending);
        }
      }
    }
  }
  static void take(std::vector<Value>& items, std::vector<Value>& pending) {
    for (Value& item : items) keep_shared(item, pending);
    items.clear();
  }
  static void take(Dict& dict, std::vector<Value>& pending) {
    for (Dict::Entry& entry : dict.entries_) keep_shared(entry.second, pending);
    dict.entries_.clear();
    dict.places_.clear();
  }
  static void keep_shared(Value& value, std::vector<Value>& pending) {
    const Value::Kind kind = value.kind();
    if (kind == Value::Kind::list || kind == Value::Kind::dict || kind == Value::Kind::object)
      pending.push_back(std::move(value));
  }
};

}  // namespace detail

TENON_INLINE List::~List() {
  std::vector<Value> pending;
  detail::Release::take(items_, pending);
  detail::Release::all(pending);
}

TENON_INLINE Dict::~Dict() {
  std::vector<Value> pending;
  detail::Release::take(*this, pending);
  detail::Release::all(pending);
}

TENON_INLINE Value::Value(std::string text) : Value(TaggedText(std::move(text))) {}
TENON_INLINE Value::Value(TaggedText text)
    : data_(std::make_shared<const TaggedText>(std::move(text))) {}
TENON_INLINE Value::Value(List list) : data_(std::make_shared<const List>(std::move(list))) {}
TENON_INLINE Value::Value(Dict dict) : data_(std::make_shared<const Dict>(std::move(dict))) {}

TENON_INLINE Value Value::undefined(std::string what) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(what))};
  return value;
}

TENON_INLINE Value::Kind Value::kind() const {
  constexpr Kind kinds[] = {Kind::none, Kind::undefined, Kind::boolean, Kind::integer, Kind::real,
                            Kind::text, Kind::list,      Kind::dict,    Kind::object};
  return kinds[data_.index()];
}

TENON_INLINE std::optional<std::int64_t> Value::as_integer() const {
  if (kind() == Kind::boolean) return boolean() ? 1 : 0;
  if (kind() == Kind::integer) return integer();
  return std::nullopt;
}

TENON_INLINE std::optional<double> Value::as_real() const {
  if (kind() == Kind::real) return real();
  if (const auto n = as_integer()) return static_cast<double>(*n);
  return std::nullopt;
}

TENON_INLINE Value Value::parse_json(std::string_view text) {
  try {
    Budget budget = Budget::unbounded();
    return read_json(TaggedText(std::string(text)), budget);
  } catch (const ValueError& error) {
    fail<RequestError>("the text must be JSON: ", error.what, "; correct it");
  }
}

TENON_INLINE std::string Value::to_json() const {
  try {
    Budget budget = Budget::unbounded();
    return std::string(write_json(*this, {}, budget).view());
  } catch (const ValueError& error) {
    fail<RequestError>("the value must be one that JSON has: ", error.what, "; correct it");
  }
}

namespace detail {
inline Value user_text(const Value& value, int level) {
  if (level > most_levels) {
    fail<RequestError>("a value for a template must have at most ", most_levels,
                       " levels, this one has more; make it flatter");
  }
  if (value.is_text()) return TaggedText(std::string(value.text().view()), true);
  if (value.is_list()) {
    std::vector<Value> items;
    items.reserve(value.list().size());
    for (const Value& item : value.list().items()) items.push_back(user_text(item, level + 1));
    return List(std::move(items), value.list().kind());
  }
  if (!value.is_dict()) return value;
  Dict dict;
  for (const auto& [key, item] : value.dict().entries())
    dict.set(user_text(key, level + 1), user_text(item, level + 1));
  return dict;
}
}  // namespace detail

TENON_INLINE Value user_text(const Value& value) {
  return detail::user_text(value, 0);
}

TENON_INLINE Dict::Dict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

TENON_INLINE std::string Dict::spelled(std::string_view key) {
  return 't' + std::string(key);
}

TENON_INLINE std::string Dict::spelled(const Value& key) {
  if (key.is_text()) return spelled(key.text().view());
  if (key.is_none()) return "n";
  if (key.is_undefined()) return "u";
  if (const auto n = key.as_integer()) return message('i', *n);
  if (const auto x = key.as_real()) {
    constexpr double whole = 9007199254740992.0;  // 2^53
    if (*x == std::floor(*x) && std::fabs(*x) <= whole)
      return message('i', static_cast<std::int64_t>(*x));
    return "r" + real_text(*x);
  }
  throw ValueError{"a key of a dict must be text, a number, a bool or none"};
}

TENON_INLINE const Value* Dict::find(const Value& key) const {
  const auto place = places_.find(spelled(key));
  return place == places_.end() ? nullptr : &entries_[place->second].second;
}

TENON_INLINE const Value* Dict::find(std::string_view key) const {
  const auto place = places_.find(spelled(key));
  return place == places_.end() ? nullptr : &entries_[place->second].second;
}

TENON_INLINE void Dict::set(Value key, Value value) {
  const auto [place, added] = places_.emplace(spelled(key), entries_.size());
  if (added) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
}

TENON_INLINE Dict Dict::copy() const {
  Dict dict;
  dict.entries_ = entries_;
  dict.places_ = places_;
  return dict;
}

TENON_INLINE std::size_t Dict::copy_bytes() const {
  constexpr std::size_t bytes_of_place = 96;
  std::size_t bytes = entries_.size() * (sizeof(Entry) + bytes_of_place);
  for (const Entry& entry : entries_) {
    if (entry.first.is_text()) bytes += entry.first.text().size();
  }
  return bytes;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
