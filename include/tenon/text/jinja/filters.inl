#pragma once
// The filters and tests. Those on case know ASCII letters only.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "list_filters.inl"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

inline Value filter_default(In, Of of, With with) {
  const Value* fallback = with.find(0, "default_value");
  const bool falsy = flag(with, 1, "boolean", false) && !truth(of);
  if (!of.is_undefined() && !falsy) return of;
  return fallback != nullptr ? *fallback : Value("");
}
inline Value filter_tojson(In in, Of of, With with) {
  with.only(4, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = flag(with, 0, "ensure_ascii", false);
  style.sort_keys = flag(with, 3, "sort_keys", false);
  const std::int64_t indent = integer_of(with.find(1, "indent"), -1, "indent");
  style.indent = static_cast<int>((std::clamp)(indent, std::int64_t{-1}, std::int64_t{64}));
  const Value* separators = with.find(2, "separators");
  if (separators != nullptr && !separators->is_none()) {
    const std::vector<Value> two = iterate(*separators, in.budget());
    if (two.size() != 2) throw ValueError{"separators are two texts"};
    style.item_separator = text_of(two[0], "a separator").view();
    style.key_separator = text_of(two[1], "a separator").view();
  }
  return write_json(of, style, in.budget());
}
inline Value filter_indent(In in, Of of, With with) {
  const Value* width = with.find(0, "width");
  const bool first = flag(with, 1, "first", false), blank = flag(with, 2, "blank", false);
  const std::int64_t n = width != nullptr && width->is_text() ? 0 : integer_of(width, 4, "width");
  constexpr std::int64_t most = 1000;
  const TaggedText space =
      width != nullptr && width->is_text()
          ? width->text()
          : TaggedText(
                std::string(static_cast<std::size_t>((std::clamp)(n, std::int64_t{0}, most)), ' '));
  TaggedText out;
  bool is_first = true;
  const std::vector<Value> lines = lines_of(text_of(of, "what is indented"), true, in.budget());
  in.budget().make(0);
  for (const Value& line : lines) {
    const bool empty = stripped(line.text(), nullptr, true, false, in.budget()).empty();
    if ((is_first ? first : true) && (blank || !empty)) in.budget().append(out, space);
    in.budget().append(out, line.text());
    is_first = false;
  }
  return out;
}
inline Value filter_int(In in, Of of, With with) {
  const Value* fallback = with.find(0, "default");
  const Value otherwise = fallback != nullptr ? *fallback : Value(0);
  if (const auto n = of.as_integer()) return *n;
  double x = 0;
  if (of.is_text()) {
    const TaggedText text = stripped(of.text(), nullptr, true, true, in.budget());
    in.budget().scan(text.size() * 4);
    const std::string_view digits = text.view();
    std::int64_t n = 0;
    const char* last = digits.data() + digits.size();
    if (const auto [end, error] = std::from_chars(digits.data(), last, n);
        error == std::errc{} && end == last)
      return n;
    const auto [end, error] = std::from_chars(digits.data(), last, x);
    if (error != std::errc{} || end != last) return otherwise;
  } else if (of.kind() == Value::Kind::real) {
    x = of.real();
  } else {
    if (of.is_undefined()) throw ValueError{of.why_undefined()};
    return otherwise;
  }
  return std::fabs(x) < 9e18 ? Value(static_cast<std::int64_t>(x)) : otherwise;
}
inline Value filter_float(In in, Of of, With with) {
  const Value* fallback = with.find(0, "default");
  if (const auto x = of.as_real()) return *x;
  if (of.is_undefined()) throw ValueError{of.why_undefined()};
  if (of.is_text()) {
    const TaggedText text = stripped(of.text(), nullptr, true, true, in.budget());
    in.budget().scan(text.size() * 4);
    double x = 0;
    const char* last = text.view().data() + text.size();
    if (const auto [end, error] = std::from_chars(text.view().data(), last, x);
        error == std::errc{} && end == last)
      return x;
  }
  return fallback != nullptr ? *fallback : Value(0.0);
}
inline Value filter_round(In, Of of, With with) {
  const std::int64_t digits = integer_of(with.find(0, "precision"), 0, "precision");
  const Value* method = with.find(1, "method");
  const std::string_view how = method != nullptr ? text_of(*method, "method").view() : "common";
  const auto x = of.as_real();
  if (!x || digits < -20 || digits > 20)
    throw ValueError{"a number and up to 20 digits must be given"};
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *x * unit;
  if (how == "ceil") return std::ceil(scaled) / unit;
  if (how == "floor") return std::floor(scaled) / unit;
  return std::nearbyint(scaled) / unit;
}
inline Value filter_abs(In, Of of, With) {
  if (const auto n = of.as_integer()) return *n < 0 ? negate(of) : Value(*n);
  if (of.kind() != Value::Kind::real) throw ValueError{"a number must be given"};
  return std::fabs(of.real());
}
inline Value filter_escape(In in, Of of, With) {
  TaggedText text = to_text(of, in.budget());
  constexpr std::string_view from[] = {"&", ">", "<", "'", "\""};
  constexpr std::string_view to[] = {"&amp;", "&gt;", "&lt;", "&#39;", "&#34;"};
  for (std::size_t i = 0; i < std::size(from); ++i) {
    const TaggedText entity(std::string(to[i]), text.any_user());
    text = replaced(text, from[i], entity, -1, in.budget());
  }
  return text;
}
inline Value filter_length(In in, Of of, With) {
  return static_cast<std::int64_t>(length(of, in.budget()));
}
inline Value cased(In in, Of of, Case how) {
  return in_case(*TextOf(of, in.budget()), how, in.budget());
}
inline Value filter_replace(In in, Of of, With with) {
  Budget& budget = in.budget();
  const std::int64_t most = integer_of(with.find(2, "count"), -1, "count");
  const TextOf from(with.need(0, "old"), budget), to(with.need(1, "new"), budget);
  return replaced(*TextOf(of, budget), from->view(), *to, most, budget);
}
inline Value filter_string(In in, Of of, With) {
  if (of.is_text()) return of;
  return to_text(of, in.budget());
}
inline Value filter_trim(In in, Of of, With with) {
  const Value* what = with.find(0, "chars");
  const bool given = what != nullptr && !what->is_none();
  const TaggedText* characters = given ? &text_of(*what, "chars") : nullptr;
  return stripped(*TextOf(of, in.budget()), characters, true, true, in.budget());
}
inline Value filter_wordcount(In in, Of of, With) {
  const auto words = split(*TextOf(of, in.budget()), nullptr, -1, false, in.budget());
  return static_cast<std::int64_t>(words.size());
}
inline Value filter_from_json(In in, Of of, With) {
  const TaggedText& text = text_of(of, "JSON");
  return read_json(text, in.budget());
}

struct FilterEntry {
  std::string_view name;
  Filter filter;
};
inline constexpr FilterEntry filters[] = {
    {"abs", filter_abs},
    {"batch", filter_batch},
    {"capitalize", [](In in, Of of, With) { return cased(in, of, Case::capital); }},
    {"center",
     [](In in, Of of, With with) -> Value {
       const std::int64_t width = integer_of(with.find(0, "width"), 80, "width");
       return padded(*TextOf(of, in.budget()), width, "center", TaggedText(" "), in.budget());
     }},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", [](In in, Of of, With) -> Value { return edge(in, of, true); }},
    {"float", filter_float},
    {"format",
     [](In in, Of of, With with) -> Value {
       return printf_text(text_of(of, "a format"), with.values, in.budget());
     }},
    {"from_json", filter_from_json},
    {"groupby", filter_groupby},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", [](In in, Of of, With) -> Value { return edge(in, of, false); }},
    {"length", filter_length},
    {"list", [](In in, Of of, With) -> Value { return List(iterate(of, in.budget())); }},
    {"lower", [](In in, Of of, With) { return cased(in, of, Case::lower); }},
    {"map", filter_map},
    {"max", [](In in, Of of, With with) -> Value { return extreme(in, of, with, true); }},
    {"min", [](In in, Of of, With with) -> Value { return extreme(in, of, with, false); }},
    {"reject", [](In in, Of of, With with) -> Value { return chosen(in, of, with, false, false); }},
    {"rejectattr",
     [](In in, Of of, With with) -> Value { return chosen(in, of, with, false, true); }},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_string},
    {"select", [](In in, Of of, With with) -> Value { return chosen(in, of, with, true, false); }},
    {"selectattr",
     [](In in, Of of, With with) -> Value { return chosen(in, of, with, true, true); }},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", [](In in, Of of, With) { return cased(in, of, Case::title); }},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"unique", filter_unique},
    {"upper", [](In in, Of of, With) { return cased(in, of, Case::upper); }},
    {"wordcount", filter_wordcount},
};

}  // namespace detail

TENON_INLINE Filter find_filter(std::string_view name) {
  for (const detail::FilterEntry& entry : detail::filters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
