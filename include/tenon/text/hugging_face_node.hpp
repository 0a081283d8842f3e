#pragma once
// A value of a tokenizer.json, or a file beside it, with its place in the file, so that what is
// wrong can be named.
#if defined(TENON_WITH_TEXT)
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/json_value.hpp"

namespace tenon::inline TENON_ABI {
namespace detail {

// Refers to a document that must outlive it. Every reader throws LoadError for another type.
class HuggingFaceNode {
 public:
  HuggingFaceNode(const JsonValue& value, std::string path, const char* file = "tokenizer.json")
      : value_(&value), file_(file), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const JsonValue& json() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  // The member of an object, null where it is missing.
  HuggingFaceNode operator[](std::string_view key) const {
    static const JsonValue null;
    if (value_->object() == nullptr) wrong("an object");
    const JsonValue* member = value_->find(key);
    return {member == nullptr ? null : *member,
            path_.empty() ? std::string(key) : message(path_, ".", key), file_};
  }
  std::vector<HuggingFaceNode> items() const {
    if (value_->list() == nullptr) wrong("an array");
    std::vector<HuggingFaceNode> all;
    for (const JsonValue& item : *value_->list())
      all.emplace_back(item, message(path_, "[", all.size(), "]"), file_);
    return all;
  }
  const std::string& text() const {
    if (value_->text() == nullptr) wrong("a string");
    return *value_->text();
  }
  bool flag() const {
    if (value_->flag() == nullptr) wrong("true or false");
    return *value_->flag();
  }
  bool flag_or(bool fallback) const { return is_null() ? fallback : flag(); }
  std::int64_t integer() const {
    const std::optional<std::int64_t> integer = value_->integer();
    if (!integer) wrong("an integer");
    return *integer;
  }
  std::int64_t integer_or(std::int64_t fallback) const { return is_null() ? fallback : integer(); }
  double number() const {
    if (!value_->is_number()) wrong("a number");
    return value_->number();
  }
  // The name of a step.
  const std::string& type() const { return (*this)["type"].text(); }

  [[noreturn]] void wrong(std::string_view what) const {
    fail<LoadError>(file_, ": ", printable(path_), " must be ", what, ", it is ",
                    value_->type_name(), "; the file is damaged or of a kind that is not known");
  }
  // A step or a setting of one that must not be left out and is not implemented.
  [[noreturn]] void refuse(std::string_view what, std::string_view known) const {
    fail<LoadError>(file_, ": ", printable(path_), " must be what is implemented (", known,
                    "), it asks for ", printable(what), "; this tokenizer cannot be used");
  }

 private:
  const JsonValue* value_;
  const char* file_;
  std::string path_;
};

// The steps of a node: itself, or those of the "Sequence" it is, in order; none for null.
inline std::vector<HuggingFaceNode> steps_of(const HuggingFaceNode& node, std::string_view list) {
  constexpr std::size_t most_steps = 1000;
  std::vector<HuggingFaceNode> waiting, steps;
  if (!node.is_null()) waiting.push_back(node);
  while (!waiting.empty()) {
    const HuggingFaceNode next = waiting.back();
    waiting.pop_back();
    if (next.type() == "Sequence") {
      std::vector<HuggingFaceNode> parts = next[list].items();
      waiting.insert(waiting.end(), parts.rbegin(), parts.rend());
    } else {
      steps.push_back(next);
    }
    if (waiting.size() + steps.size() > most_steps)
      node.refuse("more than 1000 steps", "at most 1000 steps");
  }
  return steps;
}

inline std::string from_base64(const HuggingFaceNode& node) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : node.text()) {
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) node.wrong("base64");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace detail
}  // namespace tenon::inline TENON_ABI
#endif
