#pragma once
#include <algorithm>
#include <string>

#include "../../core/utf8.hpp"
#include "text_methods.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE bool is_space_code(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

namespace detail {

// Bytes of the white space character that starts the text; 0 when none does.
inline std::size_t space_in_front(std::string_view text) {
  const Utf8Char c = utf8_front(text);
  return c.length > 0 && is_space_code(c.code) ? static_cast<std::size_t>(c.length) : 0;
}

}  // namespace detail

TENON_INLINE std::size_t last_character(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= 4 && bytes <= text.size(); ++bytes) {
    const int length = utf8_front(text.substr(text.size() - bytes)).length;
    if (length > 0 && static_cast<std::size_t>(length) == bytes) return bytes;
  }
  return text.empty() ? 0 : 1;
}

TENON_INLINE TaggedText stripped(const TaggedText& text, const TaggedText* what, bool left,
                                 bool right, Budget& budget) {
  const auto goes = [&](std::string_view character) {
    budget.read(what == nullptr ? character.size() : what->size());
    if (what == nullptr) return detail::space_in_front(character) > 0;
    for (std::string_view set = what->view(); !set.empty();) {
      const std::size_t bytes = character_bytes(set);
      if (set.substr(0, bytes) == character) return true;
      set.remove_prefix(bytes);
    }
    return false;
  };
  std::string_view rest = text.view();
  std::size_t at = 0;
  while (left && !rest.empty()) {
    const std::size_t bytes = character_bytes(rest);
    if (!goes(rest.substr(0, bytes))) break;
    rest.remove_prefix(bytes);
    at += bytes;
  }
  while (right && !rest.empty()) {
    const std::size_t bytes = last_character(rest);
    if (!goes(rest.substr(rest.size() - bytes))) break;
    rest.remove_suffix(bytes);
  }
  budget.make(rest.size());
  budget.extend((std::min)(rest.size(), text.runs()) * Budget::bytes_of_run);
  return text.slice(at, rest.size());
}

TENON_INLINE TaggedText in_case(const TaggedText& text, Case how, Budget& budget) {
  budget.scan(text.size());
  budget.make(text);
  TaggedText out;
  bool first = true, in_word = false;
  text.for_each_run([&](std::string_view bytes, bool user) {
    std::string changed(bytes);
    for (char& c : changed) {
      const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
      bool raise = how == Case::upper || (how == Case::swapped && lower);
      if (how == Case::title) raise = !in_word;
      if (how == Case::capital) raise = first;
      if (lower && raise) {
        c = static_cast<char>(c - 'a' + 'A');
      } else if (upper && !raise) {
        c = static_cast<char>(c - 'A' + 'a');
      }
      in_word = lower || upper || static_cast<unsigned char>(c) >= 0x80;
      first = false;
    }
    out.append(changed, user);
  });
  return out;
}

TENON_INLINE TaggedText replaced(const TaggedText& text, std::string_view from,
                                 const TaggedText& to, std::int64_t most, Budget& budget) {
  TaggedText out;
  const std::string_view all = text.view();
  std::size_t at = 0, runs = 0;
  const auto put = [&] {
    budget.step();
    budget.extend(to.size());
    out.append(to);
    budget.extend((out.runs() - runs) * Budget::bytes_of_run);
    runs = out.runs();
    return most < 0 || --most > 0;
  };
  budget.make(text);
  if (most == 0) return text;
  if (from.empty()) {
    bool more = true;
    while (more) {
      more = put();
      if (at == all.size()) return out;
      const std::size_t bytes = character_bytes(all.substr(at));
      out.append(text, at, bytes);
      at += bytes;
    }
  } else {
    for (bool more = true; more;) {
      const std::size_t found = find_part(all, from, at, budget);
      if (found == all.npos) break;
      out.append(text, at, found - at);
      at = found + from.size();
      more = put();
    }
  }
  out.append(text, at, all.size() - at);
  return out;
}

TENON_INLINE std::vector<Value> split(const TaggedText& text, const TaggedText* separator,
                                      std::int64_t most, bool from_right, Budget& budget) {
  const std::string_view all = text.view();
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // first and last byte
  budget.read(all.size());
  budget.extend(text.runs() * Budget::bytes_of_run);
  const auto add = [&](std::size_t from, std::size_t to) {
    budget.make(sizeof(Value) + (to - from));
    parts.emplace_back(from, to);
  };
  const auto may_cut = [&] { return most < 0 || static_cast<std::int64_t>(parts.size()) < most; };
  std::size_t at = 0, end = all.size();
  if (separator != nullptr) {
    const std::string_view cut = separator->view();
    if (cut.empty()) throw ValueError{"the separator must not be empty"};
    while (may_cut()) {
      const std::size_t found = from_right ? find_last_part(all.substr(0, end), cut, budget)
                                           : find_part(all, cut, at, budget);
      if (found == all.npos) break;
      if (from_right) {
        add(found + cut.size(), end);
        end = found;
      } else {
        add(at, found);
        at = found + cut.size();
      }
    }
    add(at, end);
  } else {
    const auto trim = [&] {
      while (!from_right && at < end) {
        const std::size_t bytes = detail::space_in_front(all.substr(at));
        if (bytes == 0) break;
        at += bytes;
      }
      while (from_right && at < end) {
        const std::size_t bytes = last_character(all.substr(at, end - at));
        if (detail::space_in_front(all.substr(end - bytes, bytes)) == 0) break;
        end -= bytes;
      }
    };
    for (trim(); at < end; trim()) {
      if (!may_cut()) {
        add(at, end);
        break;
      }
      std::size_t edge = from_right ? end : at;
      if (from_right) {
        while (edge > at) {
          const std::size_t bytes = last_character(all.substr(at, edge - at));
          if (detail::space_in_front(all.substr(edge - bytes, bytes)) > 0) break;
          edge -= bytes;
        }
        add(edge, end);
        end = edge;
      } else {
        while (edge < end && detail::space_in_front(all.substr(edge)) == 0)
          edge += character_bytes(all.substr(edge));
        add(at, edge);
        at = edge;
      }
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  std::vector<Value> out;
  for (const auto& [from, to] : parts) out.emplace_back(text.slice(from, to - from));
  return out;
}

TENON_INLINE std::vector<Value> lines_of(const TaggedText& text, bool keep_ends, Budget& budget) {
  const std::string_view all = text.view();
  std::vector<Value> out;
  budget.read(all.size());
  budget.make(text);
  for (std::size_t start = 0, at = 0; at < all.size();) {
    const Utf8Char c = utf8_front(all.substr(at));
    const bool ends = (c.code >= 0x0A && c.code <= 0x0D) || (c.code >= 0x1C && c.code <= 0x1E) ||
                      c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    std::size_t next = at + character_bytes(all.substr(at));
    if (ends && c.length > 0) {
      if (all.substr(at, 2) == "\r\n") ++next;
      budget.make(sizeof(Value) + (next - start));
      out.emplace_back(text.slice(start, (keep_ends ? next : at) - start));
      start = next;
    } else if (next == all.size()) {
      out.emplace_back(text.slice(start));
    }
    at = next;
  }
  return out;
}

TENON_INLINE TaggedText joined(const std::vector<Value>& items, const TaggedText& between,
                               Budget& budget) {
  TaggedText out;
  budget.make(0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    budget.step();
    if (i > 0) {
      budget.append(out, between);
    }
    append_text(items[i], out, budget);
  }
  return out;
}

TENON_INLINE TaggedText formatted(const TaggedText& format, const Arguments& arguments,
                                  Budget& budget) {
  TaggedText out;
  const std::string_view all = format.view();
  budget.scan(all.size());
  budget.make(format);
  std::size_t next = 0, at = 0;
  while (at < all.size()) {
    const std::size_t brace = (std::min)(all.find_first_of("{}", at), all.size());
    out.append(format, at, brace - at);
    if (brace == all.size()) break;
    at = brace + 1;
    if (all.substr(at, 1) == all.substr(brace, 1)) {
      out.append(format, at++, 1);
      continue;
    }
    budget.step(1 + arguments.named.size());
    const std::size_t close = all.find('}', at);
    if (all[brace] == '}' || close == all.npos)
      throw ValueError{"a format must have a \"}\" for each \"{\""};
    std::string_view field = all.substr(at, close - at);
    at = close + 1;
    if (field.ends_with("!s")) field.remove_suffix(2);
    const bool number =
        !field.empty() && field.size() < 6 && field.find_first_not_of("0123456789") == field.npos;
    const std::size_t place =
        number ? static_cast<std::size_t>(std::stoi(std::string(field))) : next;
    const Value* value = nullptr;
    if (number || field.empty()) {
      if (place < arguments.values.size()) value = &arguments.values[place];
      next += field.empty() ? 1 : 0;
    } else {
      value = arguments.find(arguments.values.size(), field);
    }
    if (value == nullptr) {
      throw ValueError{message("format() has {}, {0} and {name} for what it is given, not {",
                               printable(field), '}')};
    }
    append_text(*value, out, budget);
  }
  return out;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
