#pragma once
// The filters of lists and dicts.
#include <algorithm>
#include <charconv>
#include <utility>

#include "interpreter.hpp"
#include "methods.inl"
#include "text_methods.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

using In = Interpreter&;
using Of = const Value&;
using With = const Arguments&;

inline bool flag(With with, std::size_t place, std::string_view name, bool fallback) {
  const Value* value = with.find(place, name);
  return value == nullptr ? fallback : truth(*value);
}
inline List generated(std::vector<Value> items) {
  return List(std::move(items), ListKind::generator);
}

// The value at a path like "a.b.0".
inline Value at_path(In in, Value value, const Value& path) {
  if (path.as_integer()) return item(value, path, in.budget());
  std::string_view rest = text_of(path, "an attribute").view();
  in.budget().scan(rest.size());
  for (bool more = true; more;) {
    in.budget().step();
    const std::size_t dot = rest.find('.');
    more = dot != rest.npos;
    const std::string_view name = rest.substr(0, dot);
    std::int64_t place = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
    const bool number = error == std::errc{} && end == name.data() + name.size() && place >= 0;
    in.budget().make(name.size());
    Value found = item(value, number ? Value(place) : Value(name), in.budget());
    if (found.is_undefined() && !number) found = in.attribute(value, name);
    value = std::move(found);
    rest.remove_prefix(more ? dot + 1 : rest.size());
  }
  return value;
}
// What values are ordered by: text without regard to case unless that is asked for.
inline Value sort_key(const Value& value, bool case_sensitive, Budget& budget) {
  if (!value.is_text() || case_sensitive) return value;
  return in_case(value.text(), Case::lower, budget);
}
inline void sort_by(std::vector<std::pair<Value, Value>>& keyed, bool reversed, Budget& budget) {
  budget.make_items(keyed.size() * 2);  // a stable sort has room of its own
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reversed ? less(b.first, a.first, budget) : less(a.first, b.first, budget);
  });
}
inline std::vector<std::pair<Value, Value>> keyed_by(In in, Of of, const Value* attribute,
                                                     bool case_sensitive) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& value : iterate(of, in.budget())) {
    const bool whole = attribute == nullptr || attribute->is_none();
    Value key = whole ? value : at_path(in, value, *attribute);
    in.budget().step();
    in.budget().extend(2 * sizeof(Value));
    keyed.emplace_back(sort_key(key, case_sensitive, in.budget()), std::move(value));
  }
  return keyed;
}

// select, reject and the two with attributes: those items for which the test holds, or not.
inline Value chosen(In in, Of of, With with, bool wanted, bool by_attribute) {
  const std::size_t skip = by_attribute ? 1 : 0;
  Arguments rest;
  for (std::size_t i = skip + 1; i < with.values.size(); ++i) rest.values.push_back(with.values[i]);
  rest.named = with.named;
  const bool tested = with.values.size() > skip;
  const std::string_view name = tested ? text_of(with.values[skip], "a test").view() : "";
  in.budget().make_items(rest.values.size());
  std::vector<Value> items;
  for (Value& value : iterate(of, in.budget())) {
    in.budget().step();
    const Value subject = by_attribute ? at_path(in, value, with.need(0, "attribute")) : value;
    if ((tested ? in.test(name, subject, rest) : truth(subject)) == wanted)
      items.push_back(std::move(value));
  }
  return generated(std::move(items));
}

inline Value filter_map(In in, Of of, With with) {
  std::vector<Value> items;
  const Value* attribute = with.find(with.values.size(), "attribute");
  const Value* fallback = with.find(with.values.size(), "default");
  Arguments rest;
  for (std::size_t i = 1; i < with.values.size(); ++i) rest.values.push_back(with.values[i]);
  if (attribute == nullptr) rest.named = with.named;
  in.budget().make_items(rest.values.size() + 2 * rest.named.size());
  for (Value& value : iterate(of, in.budget())) {
    if (attribute == nullptr) {
      items.push_back(in.filter(text_of(with.need(0, "filter"), "a filter").view(), value, rest));
    } else {
      Value found = at_path(in, value, *attribute);
      if (found.is_undefined() && fallback != nullptr) found = *fallback;
      items.push_back(std::move(found));
    }
  }
  return generated(std::move(items));
}

inline Value filter_dictsort(In in, Of of, With with) {
  const Value* by = with.find(1, "by");
  const bool by_value = by != nullptr && text_of(*by, "by").view() == "value";
  if (!of.is_dict()) throw ValueError{message("a dict must be given, this is ", type_name(of))};
  constexpr std::size_t bytes_of_pair = 160;
  in.budget().make_items(of.dict().size());
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : of.dict().entries()) {
    in.budget().extend(bytes_of_pair);
    keyed.emplace_back(
        sort_key(by_value ? value : key, flag(with, 0, "case_sensitive", false), in.budget()),
        List({key, value}, ListKind::tuple));
  }
  sort_by(keyed, flag(with, 2, "reverse", false), in.budget());
  std::vector<Value> items;
  for (auto& [key, pair] : keyed) items.push_back(std::move(pair));
  return List(std::move(items));
}
inline Value filter_sort(In in, Of of, With with) {
  auto keyed = keyed_by(in, of, with.find(2, "attribute"), flag(with, 1, "case_sensitive", false));
  sort_by(keyed, flag(with, 0, "reverse", false), in.budget());
  std::vector<Value> items;
  for (auto& [key, value] : keyed) items.push_back(std::move(value));
  return List(std::move(items));
}
inline Value filter_unique(In in, Of of, With with) {
  auto keyed = keyed_by(in, of, with.find(1, "attribute"), flag(with, 0, "case_sensitive", false));
  std::vector<Value> items;
  Dict seen;
  for (auto& [key, value] : keyed) {
    if (find(seen, key, in.budget()) != nullptr) continue;
    in.budget().make(key.is_text() ? key.text().size() : 0);
    seen.set(key, nullptr);
    items.push_back(std::move(value));
  }
  return generated(std::move(items));
}
inline Value filter_groupby(In in, Of of, With with) {
  auto keyed = keyed_by(in, of, &with.need(0, "attribute"), flag(with, 2, "case_sensitive", false));
  sort_by(keyed, false, in.budget());
  std::vector<Value> groups;
  for (std::size_t i = 0; i < keyed.size();) {
    std::vector<Value> group;
    const Value grouper = at_path(in, keyed[i].second, with.need(0, "attribute"));
    const std::size_t start = i;
    for (; i < keyed.size() && equal(keyed[i].first, keyed[start].first, in.budget()); ++i)
      group.push_back(keyed[i].second);
    in.budget().make_items(group.size() + 6);
    groups.emplace_back(List({grouper, List(std::move(group))}, ListKind::tuple));
  }
  return List(std::move(groups));
}
inline Value extreme(In in, Of of, With with, bool most) {
  auto keyed = keyed_by(in, of, with.find(1, "attribute"), flag(with, 0, "case_sensitive", false));
  if (keyed.empty()) return undefined("there is no item in an empty list", in.budget());
  std::size_t best = 0;
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    const Value &a = keyed[i].first, &b = keyed[best].first;
    if (most ? less(b, a, in.budget()) : less(a, b, in.budget())) best = i;
  }
  return keyed[best].second;
}
inline Value filter_sum(In in, Of of, With with) {
  const Value* start = with.find(1, "start");
  Value total = start != nullptr ? *start : Value(0);
  for (const auto& [key, value] : keyed_by(in, of, with.find(0, "attribute"), true))
    total = add(total, key, in.budget());
  return total;
}
inline Value filter_join(In in, Of of, With with) {
  const Value* between = with.find(0, "d");
  std::vector<Value> items;
  for (auto& [key, value] : keyed_by(in, of, with.find(1, "attribute"), true)) items.push_back(key);
  if (between == nullptr) return joined(items, {}, in.budget());
  return joined(items, *TextOf(*between, in.budget()), in.budget());
}
inline Value filter_items(In in, Of of, With) {
  if (of.is_undefined()) return generated({});
  if (!of.is_dict()) throw ValueError{message("a dict must be given, this is ", type_name(of))};
  const Value pairs = call_dict_method(in, of.dict(), "items", {});
  in.budget().make_items(pairs.list().size());
  return generated(pairs.list().items());
}
inline Value edge(In in, Of of, bool first) {
  if (!first && of.is_list() && !of.list().indexed())
    throw ValueError{message("a list or text has a last item, ", type_name(of), " has none")};
  const auto none = [&] { return undefined("there is no item in an empty list", in.budget()); };
  if (of.is_text()) {
    const std::string_view text = of.text().view();
    if (text.empty()) return none();
    const std::size_t bytes = first ? character_bytes(text) : last_character(text);
    in.budget().make(bytes);
    return of.text().slice(first ? 0 : text.size() - bytes, bytes);
  }
  if (of.is_list()) {
    if (of.list().exhaust() || of.list().size() == 0) return none();
    return first ? of.list().items().front() : of.list().items().back();
  }
  const std::vector<Value> items = iterate(of, in.budget());
  if (items.empty()) return none();
  return first ? items.front() : items.back();
}
inline Value filter_reverse(In in, Of of, With) {
  if (!of.is_text()) {
    std::vector<Value> items = iterate(of, in.budget());
    std::reverse(items.begin(), items.end());
    return generated(std::move(items));
  }
  in.budget().scan(of.text().size());
  in.budget().make(of.text());
  TaggedText out;
  for (std::size_t end = of.text().size(); end > 0;) {
    const std::size_t bytes = last_character(of.text().view().substr(0, end));
    end -= bytes;
    out.append(of.text(), end, bytes);
  }
  return out;
}
inline Value filter_batch(In in, Of of, With with) {
  const std::int64_t size = integer_of(&with.need(0, "linecount"), 0, "linecount");
  const Value* fill = with.find(1, "fill_with");
  if (size < 1) throw ValueError{"a batch must have 1 item or more"};
  std::vector<Value> batches, batch;
  const auto full = static_cast<std::size_t>(size);
  for (Value& value : iterate(of, in.budget())) {
    batch.push_back(std::move(value));
    if (batch.size() < full) continue;
    in.budget().make_items(2);
    batches.emplace_back(List(std::exchange(batch, {})));
  }
  if (!batch.empty()) {
    if (fill != nullptr && batch.size() < full) {
      in.budget().make_items(full);
      batch.resize(full, *fill);
    }
    batches.emplace_back(List(std::move(batch)));
  }
  return generated(std::move(batches));
}
}  // namespace detail
}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
