#pragma once
// Values as Python writes them, and the characters of a text.
#include <algorithm>
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

// Writes values as repr() does.
class ReprWriter {
 public:
  ReprWriter(TaggedText& out, Budget& budget) : out_(out), budget_(budget) {}

  void write(const Value& value, int level) {
    check_level(level);
    budget_.step();
    switch (value.kind()) {
      case Value::Kind::undefined:
        return put("Undefined");
      case Value::Kind::none:
        return put("None");
      case Value::Kind::boolean:
        return put(value.boolean() ? "True" : "False");
      case Value::Kind::integer:
        return put(message(value.integer()));
      case Value::Kind::real:
        return put(real_text(value.real()));
      case Value::Kind::text:
        return write_text(value.text());
      case Value::Kind::list:
        return write_items(value.list(), level);
      case Value::Kind::dict:
        return write_dict(value.dict(), level);
      case Value::Kind::object:
        break;
    }
    const Object& object = *value.object();
    if (object.type == Object::Type::space) return put("<Namespace>");
    if (object.type == Object::Type::loop) return put("<LoopContext>");
    put("<" + object.name + ">");
  }

 private:
  void put(std::string_view text) { budget_.append(out_, text, false); }
  void write_text(const TaggedText& text) {
    const std::string_view all = text.view();
    budget_.scan(all.size());
    const bool has_single = all.find('\'') != all.npos, has_double = all.find('"') != all.npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    put({&quote, 1});
    text.for_each_run([&](std::string_view bytes, bool user) {
      for (; !bytes.empty(); bytes.remove_prefix((std::min)(bytes.size(), most_at_once))) {
        const std::string escaped = escaped_text(bytes.substr(0, most_at_once), quote);
        budget_.append(out_, escaped, user);
      }
    });
    put({&quote, 1});
  }
  static std::string escaped_text(std::string_view bytes, char quote) {
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
    return escaped;
  }
  void write_items(const List& list, int level) {
    if (list.kind() == ListKind::generator) return put("<generator object>");
    const bool tuple = list.kind() == ListKind::tuple;
    put(list.kind() == ListKind::view ? "dict_items([" : tuple ? "(" : "[");
    bool first = true;
    for (const Value& item : list.items()) {
      if (!first) put(", ");
      first = false;
      write(item, level + 1);
    }
    if (tuple && list.size() == 1) put(",");
    put(list.kind() == ListKind::view ? "])" : tuple ? ")" : "]");
  }
  void write_dict(const Dict& dict, int level) {
    put("{");
    bool first = true;
    for (const auto& [key, item] : dict.entries()) {
      if (!first) put(", ");
      first = false;
      write(key, level + 1);
      put(": ");
      write(item, level + 1);
    }
    put("}");
  }

  static constexpr std::size_t most_at_once = 4096;  // an escaped text may be four times as long

  TaggedText& out_;
  Budget& budget_;
};

}  // namespace detail

TENON_INLINE TaggedText repr(const Value& value, Budget& budget) {
  TaggedText out;
  budget.make(0);
  detail::ReprWriter(out, budget).write(value, 0);
  return out;
}

TENON_INLINE void append_text(const Value& value, TaggedText& out, Budget& budget) {
  if (value.is_text()) {
    budget.append(out, value.text());
  } else if (!value.is_undefined()) {
    detail::ReprWriter(out, budget).write(value, 0);
  }
}

TENON_INLINE TaggedText to_text(const Value& value, Budget& budget) {
  TaggedText out;
  budget.make(0);
  append_text(value, out, budget);
  return out;
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
