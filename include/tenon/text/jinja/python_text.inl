#pragma once
// Values as Python writes them, and the characters of a text.
#include <charconv>
#include <cmath>
#include <cstdint>

#include "../../core/error.hpp"
#include "../../core/utf8.hpp"
#include "json.inl"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

inline void append_repr(const Value& value, TaggedText& out, int level);

inline void append_text_repr(const TaggedText& text, TaggedText& out) {
  const std::string_view all = text.view();
  const bool has_single = all.find('\'') != all.npos, has_double = all.find('"') != all.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.append({&quote, 1}, false);
  text.for_each_run([&](std::string_view bytes, bool user) {
    std::string escaped;
    for (const char c : bytes) {
      constexpr std::string_view plain = "\n\r\t\\", escape = "nrt\\";
      const auto byte = static_cast<unsigned char>(c);
      if (const std::size_t which = plain.find(c); which != std::string_view::npos) {
        escaped += {'\\', escape[which]};
      } else if (c == quote) {
        escaped += {'\\', c};
      } else if (byte < 0x20 || byte == 0x7F) {
        escaped += {'\\', 'x', hex_digits[byte >> 4], hex_digits[byte & 15]};
      } else {
        escaped += c;
      }
    }
    out.append(escaped, user);
  });
  out.append({&quote, 1}, false);
}

inline void append_items_repr(const List& list, TaggedText& out, int level) {
  if (list.kind() == ListKind::generator) return out.append("<generator object>", false);
  const bool tuple = list.kind() == ListKind::tuple;
  out.append(list.kind() == ListKind::view ? "dict_items([" : tuple ? "(" : "[", false);
  bool first = true;
  for (const Value& item : list.items()) {
    if (!first) out.append(", ", false);
    first = false;
    append_repr(item, out, level + 1);
  }
  if (tuple && list.size() == 1) out.append(",", false);
  out.append(list.kind() == ListKind::view ? "])" : tuple ? ")" : "]", false);
}

TENON_INLINE void check_written(std::size_t bytes) {
  if (bytes > most_written)
    throw ValueError{message("a value must have at most ", most_written, " bytes as text")};
}

inline void append_repr(const Value& value, TaggedText& out, int level) {
  check_written(out.size());
  check_level(level);
  switch (value.kind()) {
    case Value::Kind::undefined:
      return out.append("Undefined", false);
    case Value::Kind::none:
      return out.append("None", false);
    case Value::Kind::boolean:
      return out.append(value.boolean() ? "True" : "False", false);
    case Value::Kind::integer:
      return out.append(message(value.integer()), false);
    case Value::Kind::real:
      return out.append(real_text(value.real()), false);
    case Value::Kind::text:
      return append_text_repr(value.text(), out);
    case Value::Kind::list:
      return append_items_repr(value.list(), out, level);
    case Value::Kind::dict:
      break;
    case Value::Kind::object: {
      const Object& object = *value.object();
      if (object.type == Object::Type::space) return out.append("<Namespace>", false);
      if (object.type == Object::Type::loop) return out.append("<LoopContext>", false);
      return out.append("<" + object.name + ">", false);
    }
  }
  out.append("{", false);
  bool first = true;
  for (const auto& [key, item] : value.dict().entries()) {
    if (!first) out.append(", ", false);
    first = false;
    append_repr(key, out, level + 1);
    out.append(": ", false);
    append_repr(item, out, level + 1);
  }
  out.append("}", false);
}

}  // namespace detail

TENON_INLINE TaggedText repr(const Value& value) {
  TaggedText out;
  detail::append_repr(value, out, 0);
  return out;
}

TENON_INLINE TaggedText to_text(const Value& value) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) return {};
  return repr(value);
}

TENON_INLINE std::string real_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char digits[40];
  // Python changes to exponents below 1e-4 and from 1e16 on.
  const double size = std::fabs(x);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(digits, digits + sizeof digits, x,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(digits, end.ptr);
  if (plain && out.find('.') == out.npos) out += ".0";
  return out;
}

TENON_INLINE std::size_t character_bytes(std::string_view text) {
  const int length = utf8_front(text).length;
  return length == 0 ? 1 : static_cast<std::size_t>(length);
}

TENON_INLINE std::size_t characters(std::string_view text) {
  std::size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(character_bytes(text));
  return n;
}

TENON_INLINE std::size_t byte_of(std::string_view text, std::size_t n) {
  std::size_t at = 0;
  for (; n > 0 && at < text.size(); --n) at += character_bytes(text.substr(at));
  return at;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
