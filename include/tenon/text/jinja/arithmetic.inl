#pragma once
// Sums, products and the like of values, and formats.
#include <charconv>
#include <cmath>
#include <limits>

#include "operators.hpp"
#include "operators.inl"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

inline Value checked(bool overflows, std::int64_t n) {
  if (overflows) throw ValueError{"a whole number must fit 64 bits, this one does not"};
  return n;
}

inline Value repeated(const Value& value, std::int64_t times, Budget& budget) {
  const std::size_t n = times > 0 ? static_cast<std::size_t>(times) : 0;
  const std::size_t size = value.is_text() ? value.text().size() : value.list().size();
  const std::size_t most = budget.limits().made_bytes;
  if (value.is_text()) {
    const TaggedText& text = value.text();
    const std::size_t bytes_of_one = size + text.runs() * Budget::bytes_of_run;
    if (n > 0 && bytes_of_one > most / n) Budget::exceeded("bytes of values", most);
    budget.make(bytes_of_one * n);
    TaggedText out;
    for (std::size_t i = 0; i < n && size > 0; ++i) out.append(text);
    return out;
  }
  if (n > 0 && size > most / n) Budget::exceeded("bytes of values", most);
  budget.make_items(size * n);
  std::vector<Value> items;
  items.reserve(size * n);
  for (std::size_t i = 0; i < n && size > 0; ++i)
    items.insert(items.end(), value.list().items().begin(), value.list().items().end());
  return List(std::move(items), value.list().kind());
}
}  // namespace detail

TENON_INLINE Value add(const Value& a, const Value& b, Budget& budget) {
  if (a.is_text() && b.is_text()) {
    budget.make(a.text());
    TaggedText out = a.text();
    budget.append(out, b.text());
    return out;
  }
  const detail::Numbers two = detail::numbers(a, b);
  if (two.whole()) {
    std::int64_t n = 0;
    const bool overflows = __builtin_add_overflow(*two.m, *two.n, &n);
    return detail::checked(overflows, n);
  }
  if (two.any()) return *two.x + *two.y;
  const bool lists =
      a.is_list() && b.is_list() && a.list().indexed() && a.list().kind() == b.list().kind();
  if (!lists) detail::no_operator("sum", a, b);
  budget.make_items(a.list().size() + b.list().size());
  std::vector<Value> items = a.list().items();
  items.insert(items.end(), b.list().items().begin(), b.list().items().end());
  return List(std::move(items), a.list().kind());
}

TENON_INLINE Value subtract(const Value& a, const Value& b) {
  const detail::Numbers two = detail::numbers(a, b);
  if (two.whole()) {
    std::int64_t n = 0;
    const bool overflows = __builtin_sub_overflow(*two.m, *two.n, &n);
    return detail::checked(overflows, n);
  }
  if (two.any()) return *two.x - *two.y;
  detail::no_operator("difference", a, b);
}

TENON_INLINE Value multiply(const Value& a, const Value& b, Budget& budget) {
  const detail::Numbers two = detail::numbers(a, b);
  if (two.whole()) {
    std::int64_t n = 0;
    const bool overflows = __builtin_mul_overflow(*two.m, *two.n, &n);
    return detail::checked(overflows, n);
  }
  if (two.any()) return *two.x * *two.y;
  if (detail::repeats(a) && two.n) return detail::repeated(a, *two.n, budget);
  if (detail::repeats(b) && two.m) return detail::repeated(b, *two.m, budget);
  detail::no_operator("product", a, b);
}

namespace detail {
inline Numbers divisible(const Value& a, const Value& b) {
  const Numbers two = numbers(a, b);
  if (!two.any()) no_operator("quotient", a, b);
  if (*two.y == 0) throw ValueError{"a divisor must not be 0"};
  return two;
}
}  // namespace detail

TENON_INLINE Value divide(const Value& a, const Value& b) {
  const detail::Numbers two = detail::divisible(a, b);
  return *two.x / *two.y;
}

TENON_INLINE Value floor_divide(const Value& a, const Value& b) {
  const detail::Numbers two = detail::divisible(a, b);
  if (!two.whole()) return std::floor(*two.x / *two.y);
  const std::int64_t m = *two.m, n = *two.n;
  if (n == -1) return negate(m);
  return m / n - (m % n != 0 && (m < 0) != (n < 0) ? 1 : 0);
}

TENON_INLINE Value modulo(const Value& a, const Value& b, Budget& budget) {
  if (a.is_text()) {
    const bool several = b.is_list() && b.list().kind() == ListKind::tuple;
    if (several) return printf_text(a.text(), b.list().items(), budget);
    return printf_text(a.text(), {b}, budget);
  }
  const detail::Numbers two = detail::divisible(a, b);
  if (!two.whole()) {
    constexpr std::size_t steps_of_it = 16;  // by subtraction, for numbers far apart
    budget.step(steps_of_it);
    const double rest = std::fmod(*two.x, *two.y);
    return rest != 0 && (rest < 0) != (*two.y < 0) ? rest + *two.y : rest;
  }
  const std::int64_t m = *two.m, n = *two.n;
  if (n == -1) return std::int64_t{0};
  const std::int64_t rest = m % n;
  return rest != 0 && (rest < 0) != (n < 0) ? rest + n : rest;
}

TENON_INLINE Value power(const Value& a, const Value& b) {
  const detail::Numbers two = detail::numbers(a, b);
  if (!two.any()) detail::no_operator("power", a, b);
  if (!two.whole() || *two.n < 0) return std::pow(*two.x, *two.y);
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < *two.n && result != 0 && *two.m != 1; ++i) {
    if (*two.m == -1) return *two.n % 2 == 0 ? 1 : -1;
    const bool overflows = __builtin_mul_overflow(result, *two.m, &result);
    detail::checked(overflows, result);
  }
  return result;
}

TENON_INLINE Value negate(const Value& a) {
  if (const auto n = a.as_integer()) {
    const bool overflows = *n == (std::numeric_limits<std::int64_t>::min)();
    return detail::checked(overflows, overflows ? 0 : -*n);
  }
  if (a.kind() == Value::Kind::real) return -a.real();
  if (a.is_undefined()) throw ValueError{a.why_undefined()};
  throw ValueError{message("a number must follow the sign, this is ", type_name(a))};
}

TENON_INLINE TaggedText printf_text(const TaggedText& format, const std::vector<Value>& arguments,
                                    Budget& budget) {
  budget.scan(format.size());
  budget.make(format);
  TaggedText out;
  const std::string_view text = format.view();
  std::size_t used = 0, at = 0;
  while (at < text.size()) {
    const std::size_t percent = (std::min)(text.find('%', at), text.size());
    out.append(format, at, percent - at);
    if (percent == text.size()) break;
    std::size_t end = percent + 1, digits = 6;
    if (end < text.size() && text[end] == '.') {
      const auto [next, error] =
          std::from_chars(text.data() + end + 1, text.data() + text.size(), digits);
      if (error != std::errc{} || digits > 30) throw ValueError{"a precision must be 0 to 30"};
      end = static_cast<std::size_t>(next - text.data());
    }
    const char kind = end < text.size() ? text[end] : '\0';
    at = (std::min)(end + 1, text.size());
    if (kind == '%') {
      out.append("%", format.user_at(percent));
      continue;
    }
    if (used >= arguments.size()) throw ValueError{"a format must not ask for more than is given"};
    const Value& value = arguments[used++];
    constexpr std::size_t steps_of_number = 8;
    budget.step(steps_of_number);
    const auto x = value.as_real();
    if (kind == 's' || kind == 'r') {
      if (kind == 's') {
        append_text(value, out, budget);
      } else {
        budget.append(out, repr(value, budget));
      }
    } else if ((kind == 'd' || kind == 'i') && x) {
      if (!(std::fabs(*x) < 9e18)) throw ValueError{"a whole number must fit 64 bits"};
      budget.append(out, message(value.as_integer().value_or(static_cast<std::int64_t>(*x))),
                    false);
    } else if (kind == 'f' && x) {
      char buffer[400];
      const auto last = std::to_chars(buffer, buffer + sizeof buffer, *x, std::chars_format::fixed,
                                      static_cast<int>(digits));
      budget.append(out, {buffer, static_cast<std::size_t>(last.ptr - buffer)}, false);
    } else {
      throw ValueError{
          message("a format has %s, %r, %d, %i, %f and %%, or the value is of another "
                  "type: ",
                  type_name(value))};
    }
  }
  if (used < arguments.size()) throw ValueError{"a format must use all that is given"};
  return out;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
