#pragma once
#include <algorithm>

#include "tagged_text.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE bool TaggedText::user_at(std::size_t at) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), at,
                                    [](std::size_t n, const Run& r) { return n < r.end; });
  return run != runs_.end() && run->user;
}

TENON_INLINE bool TaggedText::any_user() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.user; });
}

TENON_INLINE void TaggedText::append(std::string_view bytes, bool user) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (runs_.empty() || runs_.back().user != user) {
    runs_.push_back({bytes_.size(), user});
  } else {
    runs_.back().end = bytes_.size();
  }
}

TENON_INLINE void TaggedText::append(const TaggedText& text, std::size_t at, std::size_t count) {
  const std::size_t end = at + (std::min)(count, text.size() - at);
  auto run = std::upper_bound(text.runs_.begin(), text.runs_.end(), at,
                              [](std::size_t n, const Run& r) { return n < r.end; });
  for (; at < end; ++run) {
    const std::size_t stop = (std::min)(run->end, end);
    append(text.view().substr(at, stop - at), run->user);
    at = stop;
  }
}

TENON_INLINE TaggedText TaggedText::slice(std::size_t at, std::size_t count) const {
  TaggedText part;
  part.append(*this, at, count);
  return part;
}

TENON_INLINE std::vector<TextSegment> TaggedText::segments() const {
  std::vector<TextSegment> out;
  for_each_run([&](std::string_view bytes, bool user) {
    out.push_back({std::string(bytes), !user});
  });
  return out;
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
