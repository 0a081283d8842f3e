#pragma once
// The methods of text, dicts and lists, and strftime.
#include <algorithm>

#include "interpreter.hpp"
#include "text_methods.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

// Methods that change their object are missing on purpose: the sandbox of Hugging Face refuses
// them.
inline constexpr std::string_view text_method_names[] = {
    "capitalize", "count",   "endswith",     "find",         "format",     "index", "isalnum",
    "isalpha",    "isdigit", "islower",      "isspace",      "isupper",    "join",  "ljust",
    "lower",      "lstrip",  "removeprefix", "removesuffix", "replace",    "rfind", "rjust",
    "rsplit",     "rstrip",  "split",        "splitlines",   "startswith", "strip", "swapcase",
    "title",      "upper",   "zfill"};
inline constexpr std::string_view dict_method_names[] = {"copy", "get", "items", "keys", "values"};
inline constexpr std::string_view list_method_names[] = {"copy", "count", "index"};

inline const TaggedText& text_of(const Value& value, std::string_view what) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) throw ValueError{value.why_undefined()};
  throw ValueError{message(what, " must be text, it is ", type_name(value))};
}
inline std::int64_t integer_of(const Value* value, std::int64_t fallback, std::string_view what) {
  if (value == nullptr || value->is_none()) return fallback;
  if (const auto n = value->as_integer()) return *n;
  throw ValueError{message(what, " must be a whole number, it is ", type_name(*value))};
}

inline bool has_affix(const TaggedText& text, const Value& affix, bool front, Budget& budget) {
  if (affix.is_list()) {
    for (const Value& one : affix.list().items()) {
      budget.step();
      if (!one.is_list() && has_affix(text, one, front, budget)) return true;
    }
    return false;
  }
  const std::string_view part = text_of(affix, "what it starts or ends with").view();
  budget.scan((std::min)(part.size(), text.size()));
  return front ? text.view().starts_with(part) : text.view().ends_with(part);
}

inline bool all_characters(std::string_view text, std::string_view kind, Budget& budget) {
  budget.read(text.size());
  const bool spaces = kind == "isspace", cases = kind == "islower" || kind == "isupper";
  const bool digits = kind == "isdigit" || kind == "isalnum";
  const bool letters = kind == "isalpha" || kind == "isalnum";
  bool any = false;
  for (; !text.empty(); text.remove_prefix(character_bytes(text))) {
    const char c = text[0];
    const bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'z';
    const bool upper = c >= 'A' && c <= 'Z', other = static_cast<unsigned char>(c) >= 0x80;
    if (cases) {
      if (kind == "islower" ? upper : lower) return false;
      any = any || lower || upper;
      continue;
    }
    any = true;
    const bool fits = spaces ? is_space_code(utf8_front(text).code)
                             : (digits && digit) || (letters && (lower || upper || other));
    if (!fits) return false;
  }
  return any;
}

inline std::int64_t count_of(std::string_view text, std::string_view part, Budget& budget) {
  if (part.empty()) budget.read(text.size());
  if (part.empty()) return static_cast<std::int64_t>(characters(text)) + 1;
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = find_part(text, part, at, budget)) != text.npos; at += part.size())
    ++n;
  return n;
}

inline Value padded(const TaggedText& text, std::int64_t width, std::string_view name,
                    const TaggedText& fill, Budget& budget) {
  budget.read(text.size());
  budget.make(text);
  const auto size = static_cast<std::int64_t>(characters(text.view()));
  if (width <= size) return text;
  if (fill.size() != 1) throw ValueError{"what fills must be one character"};
  const auto count = static_cast<std::size_t>(width - size);
  budget.extend(count);
  budget.extend(2 * Budget::bytes_of_run);
  const std::size_t left = name == "rjust" || name == "zfill" ? count
                           : name == "center"                 ? count / 2
                                                              : 0;
  TaggedText out;
  const bool user = fill.any_user();
  const bool sign =
      name == "zfill" && !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
  if (sign) out.append(text, 0, 1);
  out.append(std::string(left, fill.view()[0]), user);
  out.append(text, sign ? 1 : 0, text.size());
  out.append(std::string(count - left, fill.view()[0]), user);
  return out;
}

inline Value call_text_method(Interpreter& in, const TaggedText& text, std::string_view name,
                              const Arguments& given) {
  const auto argument = [&](std::size_t place, std::string_view called) -> const TaggedText& {
    return text_of(given.need(place, called), called);
  };
  const auto optional = [&](std::size_t place, std::string_view called) -> const TaggedText* {
    const Value* value = given.find(place, called);
    return value == nullptr || value->is_none() ? nullptr : &text_of(*value, called);
  };
  Budget& budget = in.budget();
  if (name != "format") given.only(3, {"sep", "maxsplit", "keepends", "count"});
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return stripped(text, optional(0, "chars"), name != "rstrip", name != "lstrip", budget);
  if (name == "split" || name == "rsplit") {
    const std::int64_t most = integer_of(given.find(1, "maxsplit"), -1, "maxsplit");
    return List(split(text, optional(0, "sep"), most, name == "rsplit", in.budget()));
  }
  if (name == "splitlines") {
    const Value* keep = given.find(0, "keepends");
    return List(lines_of(text, keep != nullptr && truth(*keep), in.budget()));
  }
  if (name == "startswith") return has_affix(text, given.need(0, "prefix"), true, budget);
  if (name == "endswith") return has_affix(text, given.need(0, "suffix"), false, budget);
  if (name == "removeprefix") {
    const TaggedText& affix = argument(0, "prefix");
    budget.make(text);
    return text.view().starts_with(affix.view()) ? text.slice(affix.size()) : text;
  }
  if (name == "removesuffix") {
    const TaggedText& affix = argument(0, "suffix");
    budget.make(text);
    return text.view().ends_with(affix.view()) ? text.slice(0, text.size() - affix.size()) : text;
  }
  if (name == "replace") {
    const std::int64_t most = integer_of(given.find(2, "count"), -1, "count");
    return replaced(text, argument(0, "old").view(), argument(1, "new"), most, in.budget());
  }
  if (name == "lower") return in_case(text, Case::lower, budget);
  if (name == "upper") return in_case(text, Case::upper, budget);
  if (name == "title") return in_case(text, Case::title, budget);
  if (name == "capitalize") return in_case(text, Case::capital, budget);
  if (name == "swapcase") return in_case(text, Case::swapped, budget);
  if (name == "find" || name == "rfind" || name == "index") {
    const std::string_view part = argument(0, "sub").view();
    const std::size_t at = name == "rfind" ? find_last_part(text.view(), part, budget)
                                           : find_part(text.view(), part, 0, budget);
    if (at != text.view().npos) budget.read(at);
    if (at != text.view().npos)
      return static_cast<std::int64_t>(characters(text.view().substr(0, at)));
    if (name == "index") throw ValueError{"the text to find must be there, it is not"};
    return -1;
  }
  if (name == "count") return count_of(text.view(), argument(0, "sub").view(), budget);
  if (name == "join") {
    const std::vector<Value> items = iterate(given.need(0, "items"), in.budget());
    for (const Value& item : items) text_of(item, "an item to join");
    return joined(items, text, in.budget());
  }
  if (name == "format") return formatted(text, given, in.budget());
  if (name == "ljust" || name == "rjust" || name == "zfill") {
    const TaggedText* fill = name == "zfill" ? nullptr : optional(1, "fillchar");
    const TaggedText fallback(name == "zfill" ? "0" : " ");
    return padded(text, integer_of(&given.need(0, "width"), 0, "width"), name,
                  fill != nullptr ? *fill : fallback, in.budget());
  }
  return all_characters(text.view(), name, budget);
}

inline Value call_dict_method(Interpreter& in, const Dict& dict, std::string_view name,
                              const Arguments& given) {
  if (name == "get") {
    given.only(2);
    const Value* found = find(dict, given.need(0, "key"), in.budget());
    const Value* fallback = given.find(1, "default");
    return found != nullptr ? *found : fallback != nullptr ? *fallback : Value();
  }
  given.only(0);
  if (name == "copy") {
    in.budget().make(dict.copy_bytes());
    return dict.copy();
  }
  constexpr std::size_t bytes_of_pair = 160;
  in.budget().make_items(dict.size());
  if (name == "items") in.budget().extend(dict.size() * bytes_of_pair);
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries()) {
    if (name == "items") {
      items.emplace_back(List({key, value}, ListKind::tuple));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  return List(std::move(items), ListKind::view);
}

inline Value call_list_method(Interpreter& in, const Value& self, std::string_view name,
                              const Arguments& given) {
  given.only(1);
  if (name == "copy") return self;
  const Value& wanted = given.need(0, "value");
  std::int64_t n = 0, at = 0;
  for (const Value& item : self.list().items()) {
    if (equal(item, wanted, in.budget())) {
      if (name == "index") return at;
      ++n;
    }
    ++at;
  }
  if (name == "index") throw ValueError{"the value to find must be in the list, it is not"};
  return n;
}

}  // namespace detail

TENON_INLINE bool has_method(const Value& self, std::string_view name) {
  const auto has = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (self.is_text() && has(detail::text_method_names)) ||
         (self.is_dict() && has(detail::dict_method_names)) ||
         (self.is_list() && self.list().indexed() && has(detail::list_method_names));
}

TENON_INLINE std::string why_no_attribute(const Value& self, std::string_view name) {
  constexpr std::string_view changing[] = {"append",     "clear",   "extend", "insert",
                                           "pop",        "popitem", "remove", "reverse",
                                           "setdefault", "sort",    "update"};
  const bool unsafe =
      (self.is_list() || self.is_dict()) &&
      std::find(std::begin(changing), std::end(changing), name) != std::end(changing);
  return unsafe ? message("templates may not change values: ", name, "()")
                : message(type_name(self), " has no attribute \"", printable(name), '"');
}

TENON_INLINE Value call_method(Interpreter& in, const Value& self, std::string_view name,
                               const Arguments& arguments) {
  if (self.is_text()) return detail::call_text_method(in, self.text(), name, arguments);
  if (self.is_dict()) return detail::call_dict_method(in, self.dict(), name, arguments);
  return detail::call_list_method(in, self, name, arguments);
}

TENON_INLINE TaggedText time_text(const TaggedText& format, const std::tm& time, Budget& budget) {
  constexpr std::size_t longest = 5;  // %F is ten characters
  budget.make(0);
  for (std::size_t i = 0; i < longest; ++i) budget.extend(format.size());
  budget.step(format.size());
  constexpr std::string_view days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
  constexpr std::string_view months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
  const auto name = [](const auto& names, int i) {
    return names[static_cast<std::size_t>(i < 0 ? 0 : i) % std::size(names)];
  };
  const auto padded = [](int n, std::size_t width, char fill = '0') {
    std::string digits = message(n);
    return digits.size() < width ? std::string(width - digits.size(), fill) + digits : digits;
  };
  std::string out;
  const std::string_view all = format.view();
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (all[at] != '%' || at + 1 == all.size()) {
      out += all[at];
      continue;
    }
    const bool bare = all[at + 1] == '-' && at + 2 < all.size();  // no leading zero
    at += bare ? 2 : 1;
    const auto two = [&](int n) { return bare ? message(n) : padded(n, 2); };
    const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
    const auto date = [&](std::string_view part) {
      return std::string(time_text(TaggedText(std::string(part)), time, budget).view());
    };
    switch (all[at]) {
      case 'Y':
        out += padded(time.tm_year + 1900, 4);
        break;
      case 'y':
        out += two((time.tm_year + 1900) % 100);
        break;
      case 'm':
        out += two(time.tm_mon + 1);
        break;
      case 'd':
        out += two(time.tm_mday);
        break;
      case 'e':
        out += padded(time.tm_mday, 2, ' ');
        break;
      case 'H':
        out += two(time.tm_hour);
        break;
      case 'I':
        out += two(hour12);
        break;
      case 'M':
        out += two(time.tm_min);
        break;
      case 'S':
        out += two(time.tm_sec);
        break;
      case 'j':
        out += bare ? message(time.tm_yday + 1) : padded(time.tm_yday + 1, 3);
        break;
      case 'p':
        out += time.tm_hour < 12 ? "AM" : "PM";
        break;
      case 'A':
        out += name(days, time.tm_wday);
        break;
      case 'a':
        out += name(days, time.tm_wday).substr(0, 3);
        break;
      case 'B':
        out += name(months, time.tm_mon);
        break;
      case 'b':
        out += name(months, time.tm_mon).substr(0, 3);
        break;
      case 'w':
        out += message(time.tm_wday);
        break;
      case 'F':
        out += date("%Y-%m-%d");
        break;
      case 'T':
        out += date("%H:%M:%S");
        break;
      case 'R':
        out += date("%H:%M");
        break;
      case 'D':
        out += date("%m/%d/%y");
        break;
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case '%':
        out += '%';
        break;
      default:
        throw ValueError{message("strftime_now() has no code %", printable(all.substr(at, 1)))};
    }
  }
  return TaggedText(std::move(out), format.any_user());
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
