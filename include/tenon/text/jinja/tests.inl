#pragma once
// The tests: what may follow "is".
#include "filters.inl"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

using Kind = Value::Kind;

inline bool is_kind(const Value& value, Kind kind) {
  return value.kind() == kind;
}
inline bool divides(const Value& value, const Value& by) {
  const auto m = value.as_integer(), n = by.as_integer();
  if (!m || !n || *n == 0)
    throw ValueError{"two whole numbers must be given, and no 0 to divide by"};
  return *n == -1 || *m % *n == 0;
}
inline bool same_object(const Value& a, const Value& b, Budget& budget) {
  return a.kind() == b.kind() && equal(a, b, budget);
}
inline bool iterable(const Value& value) {
  return is_kind(value, Kind::text) || is_kind(value, Kind::list) || is_kind(value, Kind::dict) ||
         is_kind(value, Kind::undefined) ||
         (is_kind(value, Kind::object) && value.object()->type == Object::Type::loop);
}
inline bool sequence(const Value& value) {
  if (value.is_list()) return value.list().indexed();
  return is_kind(value, Kind::text) || is_kind(value, Kind::dict) ||
         is_kind(value, Kind::undefined);
}

struct TestEntry {
  std::string_view name;
  Test test;
};
inline constexpr TestEntry tests[] = {
    {"boolean", [](In, Of of, With) { return is_kind(of, Kind::boolean); }},
    {"callable",
     [](In, Of of, With) {
       return is_kind(of, Kind::object) && of.object()->type >= Object::Type::macro;
     }},
    {"defined", [](In, Of of, With) { return !of.is_undefined(); }},
    {"divisibleby", [](In, Of of, With with) { return divides(of, with.need(0, "num")); }},
    {"eq", [](In in, Of of, With with) { return equal(of, with.need(0, "b"), in.budget()); }},
    {"==", [](In in, Of of, With with) { return equal(of, with.need(0, "b"), in.budget()); }},
    {"equalto", [](In in, Of of, With with) { return equal(of, with.need(0, "b"), in.budget()); }},
    {"even", [](In, Of of, With) { return divides(of, 2); }},
    {"false", [](In, Of of, With) { return is_kind(of, Kind::boolean) && !of.boolean(); }},
    {"filter",
     [](In, Of of, With) { return of.is_text() && find_filter(of.text().view()) != nullptr; }},
    {"float", [](In, Of of, With) { return is_kind(of, Kind::real); }},
    {"ge", [](In in, Of of, With with) { return !less(of, with.need(0, "b"), in.budget()); }},
    {"gt", [](In in, Of of, With with) { return less(with.need(0, "b"), of, in.budget()); }},
    {"greaterthan",
     [](In in, Of of, With with) { return less(with.need(0, "b"), of, in.budget()); }},
    {"in", [](In in, Of of, With with) { return contains(with.need(0, "seq"), of, in.budget()); }},
    {"integer", [](In, Of of, With) { return is_kind(of, Kind::integer); }},
    {"iterable", [](In, Of of, With) { return iterable(of); }},
    {"le", [](In in, Of of, With with) { return !less(with.need(0, "b"), of, in.budget()); }},
    {"lower",
     [](In in, Of of, With) {
       return all_characters(TextOf(of, in.budget())->view(), "islower", in.budget());
     }},
    {"lt", [](In in, Of of, With with) { return less(of, with.need(0, "b"), in.budget()); }},
    {"lessthan", [](In in, Of of, With with) { return less(of, with.need(0, "b"), in.budget()); }},
    {"mapping", [](In, Of of, With) { return of.is_dict(); }},
    {"ne", [](In in, Of of, With with) { return !equal(of, with.need(0, "b"), in.budget()); }},
    {"none", [](In, Of of, With) { return of.is_none(); }},
    {"number", [](In, Of of, With) { return of.as_real().has_value(); }},
    {"odd", [](In, Of of, With) { return !divides(of, 2); }},
    {"sameas",
     [](In in, Of of, With with) { return same_object(of, with.need(0, "other"), in.budget()); }},
    {"sequence", [](In, Of of, With) { return sequence(of); }},
    {"string", [](In, Of of, With) { return of.is_text(); }},
    {"true", [](In, Of of, With) { return is_kind(of, Kind::boolean) && of.boolean(); }},
    {"undefined", [](In, Of of, With) { return of.is_undefined(); }},
    {"upper",
     [](In in, Of of, With) {
       return all_characters(TextOf(of, in.budget())->view(), "isupper", in.budget());
     }},
};

}  // namespace detail

TENON_INLINE Test find_test(std::string_view name) {
  for (const detail::TestEntry& entry : detail::tests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
