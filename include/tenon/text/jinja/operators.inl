#pragma once
#include <algorithm>

#include "../../core/error.hpp"
#include "operators.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE Value undefined(std::string what, Budget& budget) {
  budget.make(what.size());
  return Value::undefined(std::move(what));
}

TENON_INLINE const Value* find(const Dict& dict, const Value& key, Budget& budget) {
  charge_key(key, budget);
  return dict.find(key);
}

TENON_INLINE void charge_key(const Value& key, Budget& budget) {
  // Found by comparing with some twenty others.
  constexpr std::size_t most_compared = 20;
  budget.step();
  if (!key.is_text()) return;
  budget.scan(key.text().size() * most_compared);
  budget.extend(key.text().size());
}

namespace detail {
inline constexpr std::size_t first_compared =
    4;  // what the beginning of a comparison takes, in bytes
}
TENON_INLINE std::size_t find_part(std::string_view text, std::string_view part, std::size_t from,
                                   Budget& budget) {
  if (part.empty()) return from <= text.size() ? from : text.npos;
  for (std::size_t at = from;; from = ++at) {
    at = (std::min)(text.find(part[0], at), text.size());
    if (text.size() - at < part.size()) {
      budget.scan(text.size() - (std::min)(from, text.size()));
      return text.npos;
    }
    const auto end =
        std::mismatch(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(at))
            .first;
    budget.scan(at - from + detail::first_compared + static_cast<std::size_t>(end - part.begin()));
    if (end == part.end()) return at;
  }
}

TENON_INLINE std::size_t find_last_part(std::string_view text, std::string_view part,
                                        Budget& budget) {
  if (part.size() > text.size()) return text.npos;
  for (std::size_t at = text.size() - part.size();; --at) {
    const auto end =
        std::mismatch(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(at))
            .first;
    budget.scan(detail::first_compared + static_cast<std::size_t>(end - part.begin()));
    if (end == part.end()) return at;
    if (at == 0) return text.npos;
  }
}

TENON_INLINE std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "undefined";
    case Value::Kind::none:
      return "none";
    case Value::Kind::boolean:
      return "a bool";
    case Value::Kind::integer:
      return "an int";
    case Value::Kind::real:
      return "a float";
    case Value::Kind::text:
      return "text";
    case Value::Kind::dict:
      return "a dict";
    case Value::Kind::list: {
      const ListKind kind = value.list().kind();
      return kind == ListKind::list    ? "a list"
             : kind == ListKind::tuple ? "a tuple"
                                       : "a generator";
    }
    case Value::Kind::object:
      break;
  }
  const Object::Type type = value.object()->type;
  return type == Object::Type::space  ? "a namespace"
         : type == Object::Type::loop ? "a loop"
                                      : "a function";
}

namespace detail {

[[noreturn]] inline void no_operator(std::string_view sign, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) throw ValueError{value->why_undefined()};
  }
  throw ValueError{message("there is no ", sign, " of ", type_name(a), " and ", type_name(b))};
}

// Both as integers, both as reals, or neither.
struct Numbers {
  std::optional<std::int64_t> m, n;
  std::optional<double> x, y;
  bool whole() const { return m && n; }
  bool any() const { return x && y; }
};
inline Numbers numbers(const Value& a, const Value& b) {
  return {a.as_integer(), b.as_integer(), a.as_real(), b.as_real()};
}
inline bool repeats(const Value& value) {
  return value.is_text() || (value.is_list() && value.list().indexed());
}

// A place counted from the end when negative, then kept within [low, high].
inline std::int64_t bounded_place(std::int64_t at, std::int64_t size, std::int64_t low,
                                  std::int64_t high) {
  return (std::clamp)(at < 0 ? at + size : at, low, high);
}
inline std::optional<std::int64_t> slice_part(const Value& value) {
  if (value.is_none()) return std::nullopt;
  const auto n = value.as_integer();
  if (value.is_undefined()) throw ValueError{value.why_undefined()};
  if (!n)
    throw ValueError{
        message("the parts of a slice must be whole numbers, one is ", type_name(value))};
  constexpr std::int64_t bound = std::int64_t{1} << 60;
  return (std::clamp)(*n, -bound, bound);
}

}  // namespace detail

TENON_INLINE bool truth(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
      return false;
    case Value::Kind::boolean:
      return value.boolean();
    case Value::Kind::integer:
      return value.integer() != 0;
    case Value::Kind::real:
      return value.real() != 0;
    case Value::Kind::text:
      return !value.text().empty();
    case Value::Kind::list:
      return value.list().kind() == ListKind::generator || value.list().size() > 0;
    case Value::Kind::dict:
      return value.dict().size() > 0;
    case Value::Kind::object:
      break;
  }
  return true;
}

TENON_INLINE bool equal(const Value& a, const Value& b, Budget& budget, int level) {
  budget.step();
  if (level > most_levels) throw ValueError{"values of so many levels cannot be compared"};
  const detail::Numbers two = detail::numbers(a, b);
  if (two.whole()) return *two.m == *two.n;
  if (two.any()) return *two.x == *two.y;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::text:
      if (a.text().size() != b.text().size()) return false;
      budget.scan(a.text().size());
      return a.text().view() == b.text().view();
    case Value::Kind::list: {
      const std::vector<Value>&x = a.list().items(), &y = b.list().items();
      if (a.list().kind() != b.list().kind() || x.size() != y.size()) return false;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (!equal(x[i], y[i], budget, level + 1)) return false;
      }
      return true;
    }
    case Value::Kind::dict:
      if (a.dict().size() != b.dict().size()) return false;
      for (const auto& [key, value] : a.dict().entries()) {
        const Value* other = find(b.dict(), key, budget);
        if (other == nullptr || !equal(value, *other, budget, level + 1)) return false;
      }
      return true;
    case Value::Kind::object:
      return a.object() == b.object();
    default:
      return true;
  }
}

TENON_INLINE bool less(const Value& a, const Value& b, Budget& budget, int level) {
  budget.step();
  const detail::Numbers two = detail::numbers(a, b);
  if (two.whole()) return *two.m < *two.n;
  if (two.any()) return *two.x < *two.y;
  if (a.is_text() && b.is_text()) {
    budget.scan((std::min)(a.text().size(), b.text().size()));
    return a.text().view() < b.text().view();
  }
  const bool lists = a.is_list() && b.is_list() && a.list().indexed() &&
                     a.list().kind() == b.list().kind() && level <= most_levels;
  if (!lists) detail::no_operator("order", a, b);
  const std::vector<Value>&x = a.list().items(), &y = b.list().items();
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (!equal(x[i], y[i], budget, level + 1)) return less(x[i], y[i], budget, level + 1);
  }
  return x.size() < y.size();
}

TENON_INLINE bool contains(const Value& in, const Value& item, Budget& budget) {
  if (in.is_dict()) return find(in.dict(), item, budget) != nullptr;
  if (in.is_undefined()) return false;
  if (in.is_text()) {
    if (!item.is_text()) detail::no_operator("\"in\"", item, in);
    return find_part(in.text().view(), item.text().view(), 0, budget) != std::string_view::npos;
  }
  if (!in.is_list()) detail::no_operator("\"in\"", item, in);
  for (const Value& value : in.list().items()) {
    if (equal(value, item, budget)) return true;
  }
  return false;
}

TENON_INLINE std::size_t length(const Value& value, Budget& budget) {
  if (value.is_text()) {
    budget.read(value.text().size());
    return characters(value.text().view());
  }
  if (value.is_dict()) return value.dict().size();
  if (value.is_list() && value.list().kind() != ListKind::generator) return value.list().size();
  if (value.is_undefined()) return 0;
  throw ValueError{message("a length has text, a list or a dict; this is ", type_name(value))};
}

TENON_INLINE std::vector<Value> iterate(const Value& value, Budget& budget) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (value.is_list()) {
    if (value.list().exhaust()) return items;
    budget.make_items(value.list().size());
    return value.list().items();
  }
  if (value.is_dict()) {
    budget.make_items(value.dict().size());
    for (const Dict::Entry& entry : value.dict().entries()) items.push_back(entry.first);
    return items;
  }
  if (!value.is_text()) {
    throw ValueError{message("a list, dict or text can be iterated, this is ", type_name(value))};
  }
  const TaggedText& text = value.text();
  budget.read(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text.view().substr(at));
    budget.make(bytes);
    items.emplace_back(text.slice(at, bytes));
    at += bytes;
  }
  return items;
}

TENON_INLINE Value slice(const Value& value, const Value& first, const Value& last,
                         const Value& step, Budget& budget) {
  if (value.is_undefined()) throw ValueError{value.why_undefined()};
  if (!detail::repeats(value)) {
    throw ValueError{message("text or a list can be sliced, this is ", type_name(value))};
  }
  const auto size = static_cast<std::int64_t>(length(value, budget));
  const std::int64_t by = detail::slice_part(step).value_or(1);
  if (by == 0) throw ValueError{"the step of a slice must not be 0"};
  const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto from = detail::slice_part(first), to = detail::slice_part(last);
  const std::int64_t start = from     ? detail::bounded_place(*from, size, low, high)
                             : by > 0 ? 0
                                      : high;
  const std::int64_t stop = to ? detail::bounded_place(*to, size, low, high) : by > 0 ? size : -1;
  if (value.is_text() && by == 1) {
    const std::string_view text = value.text().view();
    const std::size_t at = byte_of(text, static_cast<std::size_t>(start));
    const auto count = static_cast<std::size_t>((std::max)(stop - start, std::int64_t{0}));
    const std::size_t bytes = byte_of(text.substr(at), count);
    budget.read(at + bytes);
    budget.make(bytes);
    budget.extend((std::min)(bytes, value.text().runs()) * Budget::bytes_of_run);
    return value.text().slice(at, bytes);
  }
  const std::vector<Value> items = iterate(value, budget);
  std::vector<Value> picked;
  for (std::int64_t i = start; by > 0 ? i < stop : i > stop; i += by)
    picked.push_back(items[static_cast<std::size_t>(i)]);
  if (!value.is_text()) return List(std::move(picked), value.list().kind());
  TaggedText out;
  for (const Value& character : picked) {
    budget.append(out, character.text());
  }
  return out;
}

TENON_INLINE Value item(const Value& value, const Value& index, Budget& budget) {
  if (value.is_undefined()) throw ValueError{value.why_undefined()};
  if (value.is_dict() && !index.is_list() && !index.is_dict()) {
    if (const Value* found = find(value.dict(), index, budget)) return *found;
  }
  const auto n = index.as_integer();
  if (detail::repeats(value) && n) {
    const auto size = static_cast<std::int64_t>(length(value, budget));
    const std::int64_t at = *n < 0 ? *n + size : *n;
    if (at >= 0 && at < size) {
      const auto place = static_cast<std::size_t>(at);
      if (value.is_list()) return value.list().items()[place];
      const std::size_t byte = byte_of(value.text().view(), place);
      const std::size_t bytes = character_bytes(value.text().view().substr(byte));
      budget.read(byte);
      budget.make(bytes);
      return value.text().slice(byte, bytes);
    }
  }
  const std::string_view which = index.is_text() ? index.text().view() : "";
  const std::string shown = index.is_text()   ? message('\'', printable(which), '\'')
                            : index.is_list() ? std::string(type_name(index))
                            : index.is_dict() ? std::string(type_name(index))
                                              : std::string(repr(index, budget).view());
  return undefined(message(type_name(value), " has no element ", shown), budget);
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
