#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "../../core/error.hpp"
#include "../../core/json_escapes.hpp"
#include "../../core/utf8.hpp"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

inline void check_level(int level) {
  if (level > most_levels) {
    throw ValueError{message("a value must have at most ", most_levels, " levels, this has more")};
  }
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {
    const bool lines = style.indent >= 0;
    item_ = !style.item_separator.empty() ? style.item_separator : lines ? "," : ", ";
    key_ = !style.key_separator.empty() ? style.key_separator : ": ";
  }
  TaggedText take() { return std::move(out_); }

  void write(const Value& value, int level) {
    check_level(level);
    budget_.step();
    switch (value.kind()) {
      case Value::Kind::none:
        return put("null");
      case Value::Kind::boolean:
        return put(value.boolean() ? "true" : "false");
      case Value::Kind::integer:
        return put(message(value.integer()));
      case Value::Kind::real:
        return put(number(value.real()));
      case Value::Kind::text:
        return write_text(value.text());
      case Value::Kind::list:
        if (value.list().indexed()) return write_list(value.list(), level);
        break;
      case Value::Kind::dict:
        return write_dict(value.dict(), level);
      case Value::Kind::undefined:
        throw ValueError{value.why_undefined() + ", JSON needs a value"};
      case Value::Kind::object:
        break;
    }
    throw ValueError{"JSON has text, numbers, true, false, null, lists and dicts; this is another"};
  }

 private:
  void put(std::string_view text, bool user = false) { budget_.append(out_, text, user); }
  static std::string number(double x) {
    if (std::isnan(x)) return "NaN";
    if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
    return real_text(x);
  }
  void new_line(int level) {
    if (style_.indent < 0) return;
    put("\n");
    put(std::string(static_cast<std::size_t>(style_.indent) * static_cast<std::size_t>(level),
                    ' '));
  }
  void write_text(const TaggedText& text) {
    put("\"");
    // A character is not cut by the edge of a run; if one is, its bytes are copied.
    text.for_each_run([&](std::string_view bytes, bool user) {
      // In stretches, for an escaped text may be six times as long.
      while (!bytes.empty()) {
        const std::size_t size = whole_characters(bytes);
        put(json_escaped(bytes.substr(0, size), style_.ensure_ascii), user);
        bytes.remove_prefix(size);
      }
    });
    put("\"");
  }
  void write_list(const List& list, int level) {
    put("[");
    bool first = true;
    for (const Value& item : list.items()) {
      if (!first) put(item_);
      first = false;
      new_line(level + 1);
      write(item, level + 1);
    }
    if (!first) new_line(level);
    put("]");
  }
  void write_dict(const Dict& dict, int level) {
    budget_.step(dict.size());
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      for (const Dict::Entry* entry : entries) {
        if (!entry->first.is_text()) throw ValueError{"keys must be text to be sorted"};
      }
      std::sort(entries.begin(), entries.end(), [&](const Dict::Entry* a, const Dict::Entry* b) {
        budget_.step();
        budget_.scan((std::min)(a->first.text().size(), b->first.text().size()));
        return a->first.text().view() < b->first.text().view();
      });
    }
    put("{");
    bool first = true;
    for (const Dict::Entry* entry : entries) {
      if (!first) put(item_);
      first = false;
      new_line(level + 1);
      if (entry->first.is_text()) {
        write_text(entry->first.text());
      } else {
        put("\"");
        write(entry->first, level + 1);
        put("\"");
      }
      put(key_);
      write(entry->second, level + 1);
    }
    if (!first) new_line(level);
    put("}");
  }

  // At most 4 KB of the text, and no part of a character unless it is no UTF-8.
  static std::size_t whole_characters(std::string_view text) {
    constexpr std::size_t most = 4096;
    if (text.size() <= most) return text.size();
    const auto inside = [&](std::size_t at) {
      return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    std::size_t size = most;
    while (size > most - 3 && inside(size)) --size;
    return inside(size) ? most : size;
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::string item_, key_;
  TaggedText out_;
};

class JsonReader {
 public:
  JsonReader(std::string_view text, bool user, Budget& budget)
      : text_(text), user_(user), budget_(budget) {}

  Value whole() {
    Value value = read(0);
    space();
    if (at_ < text_.size()) wrong("nothing may follow the value");
    return value;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    throw ValueError{message("byte ", at_, " of ", text_.size(), " of the JSON: ", what)};
  }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) < 4) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(char c) {
    space();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!skip(c)) wrong(message('\'', c, "' must follow here"));
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }

  Value read(int level) {
    check_level(level);
    budget_.make(sizeof(Value));
    space();
    switch (peek()) {
      case '{':
        return read_dict(level);
      case '[':
        return read_list(level);
      case '"':
        return made_text();
      default:
        break;
    }
    if (word("true")) return true;
    if (word("false")) return false;
    if (word("null")) return nullptr;
    return read_number();
  }
  Value read_dict(int level) {
    ++at_;
    Dict dict;
    if (skip('}')) return dict;
    do {
      space();
      if (peek() != '"') wrong("a key in quotes must follow here");
      Value key = made_text();
      budget_.make(key.text().size() + sizeof(Dict::Entry));
      expect(':');
      dict.set(std::move(key), read(level + 1));
    } while (skip(','));
    expect('}');
    return dict;
  }
  Value made_text() {
    std::string text = read_text();
    budget_.make(text.size());
    return TaggedText(std::move(text), user_);
  }
  Value read_list(int level) {
    ++at_;
    std::vector<Value> items;
    if (skip(']')) return List();
    do {
      items.push_back(read(level + 1));
    } while (skip(','));
    expect(']');
    return List(std::move(items));
  }
  Value read_number() {
    const std::size_t start = at_;
    const auto digits = [&] {
      const std::size_t from = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      if (at_ == from) wrong("a value must follow here");
    };
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else {
      digits();
    }
    bool whole = true;
    if (peek() == '.') {
      whole = false;
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    const char* first = text_.data() + start;
    const char* last = text_.data() + at_;
    std::int64_t n = 0;
    if (whole && std::from_chars(first, last, n).ec == std::errc{}) return n;
    double x = 0;
    if (std::from_chars(first, last, x).ec != std::errc{}) wrong("the number is out of range");
    return x;
  }
  std::string read_text() {
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) wrong("the text in quotes must end");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) wrong("control characters must be escaped");
      if (c != '\\') {
        out += c;
        continue;
      }
      const JsonEscape escape = json_escape(text_.substr(at_));
      at_ += escape.size;
      if (!escape.expected.empty()) wrong(message(escape.expected, " must follow here"));
      append_utf8(out, escape.code);
    }
  }

  std::string_view text_;
  bool user_;
  Budget& budget_;
  std::size_t at_ = 0;
};

}  // namespace detail

TENON_INLINE TaggedText write_json(const Value& value, const JsonStyle& style, Budget& budget) {
  detail::JsonWriter writer(style, budget);
  budget.make(0);
  writer.write(value, 0);
  return writer.take();
}

TENON_INLINE Value read_json(const TaggedText& text, Budget& budget) {
  budget.scan(text.size() * 2);
  return detail::JsonReader(text.view(), text.any_user(), budget).whole();
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
