#pragma once
// Text that knows which of its bytes a template wrote and which came from a user.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// A stretch of a rendered conversation. Only text of the template may become control tokens.
struct TextSegment {
  std::string text;
  bool from_template = true;
  friend bool operator==(const TextSegment&, const TextSegment&) = default;
};

namespace jinja {

// A string of bytes with an origin for each. Every operation keeps the origins of the bytes it
// copies; nothing turns a user's byte into one of the template. Immutable but for append().
class TaggedText {
 public:
  TaggedText() = default;
  // All of one origin.
  explicit TaggedText(std::string bytes, bool user = false) : bytes_(std::move(bytes)) {
    if (!bytes_.empty()) runs_.push_back({bytes_.size(), user});
  }

  std::string_view view() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // How many stretches of one origin there are.
  std::size_t runs() const { return runs_.size(); }
  // Whether the byte at `at`, or any byte, came from a user. O(log runs), O(runs).
  bool user_at(std::size_t at) const;
  bool any_user() const;

  void append(std::string_view bytes, bool user);
  void append(const TaggedText& text) { append(text, 0, text.size()); }
  // Bytes from `at` on, at most `count`; at <= text.size(). `text` is not *this.
  void append(const TaggedText& text, std::size_t at, std::size_t count);
  TaggedText slice(std::size_t at, std::size_t count = std::string::npos) const;

  // The stretches of one origin, in order, none empty.
  std::vector<TextSegment> segments() const;
  // Calls f(string_view bytes, bool user) for each stretch of one origin.
  template <class F>
  void for_each_run(F&& f) const {
    std::size_t at = 0;
    for (const Run& run : runs_) {
      f(std::string_view(bytes_).substr(at, run.end - at), run.user);
      at = run.end;
    }
  }

 private:
  struct Run {
    std::size_t end;
    bool user;
  };

  std::string bytes_;
  std::vector<Run> runs_;  // cover all bytes; neighbours differ
};

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "tagged_text.inl"
#endif
