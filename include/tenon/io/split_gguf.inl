#pragma once
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <utility>

#include "split_gguf.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline constexpr std::int64_t most_gguf_parts = 65535;  // the keys have 16 bits

inline std::string gguf_part_ending(std::int64_t no, std::int64_t count) {
  char text[40];
  std::snprintf(text, sizeof text, "-%05lld-of-%05lld.gguf", static_cast<long long>(no) + 1,
                static_cast<long long>(count));
  return text;
}

// A split.* key of a part, which must be there.
inline std::int64_t gguf_part_key(const Gguf& file, std::string_view key) {
  if (!file.metadata().contains(key)) {
    fail<LoadError>(file.origin(), ": metadata key \"", key,
                    "\" must be there in a file that is "
                    "one of several, it is missing; download the files again");
  }
  return file.metadata().integer(key);
}

inline void check_gguf_part(const Gguf& file, std::string_view key, std::int64_t wanted) {
  const std::int64_t found = gguf_part_key(file, key);
  if (found == wanted) return;
  fail<LoadError>(file.origin(), ": metadata key \"", key, "\" must be ", wanted,
                  " by the file's name and the other parts, it is ", found,
                  "; it belongs to another model or was renamed, download it again");
}

}  // namespace detail

TENON_INLINE bool SplitGguf::is_part(const Gguf& file) {
  return file.metadata().contains("split.count") && file.metadata().integer("split.count") > 1;
}

TENON_INLINE SplitGguf SplitGguf::open(const std::filesystem::path& path, Gguf file) {
  const std::int64_t count = detail::gguf_part_key(file, "split.count");
  const std::int64_t own = detail::gguf_part_key(file, "split.no");
  const std::int64_t tensors = detail::gguf_part_key(file, "split.tensors.count");
  const std::string name = path.filename().string();
  if (count < 2 || count > detail::most_gguf_parts || own < 0 || own >= count) {
    fail<LoadError>(file.origin(), ": split.no and split.count must be a part of 2 to ",
                    detail::most_gguf_parts, ", they are ", own, " and ", count,
                    "; the file is damaged, download it again");
  }
  const std::string ending = detail::gguf_part_ending(own, count);
  if (!name.ends_with(ending)) {
    fail<LoadError>(file.origin(), ": part ", own + 1, " of ", count,
                    " must have a name that ends "
                    "in ",
                    ending, " so that the others are found, it has another; rename it");
  }
  const std::string stem = name.substr(0, name.size() - ending.size());
  SplitGguf all;
  all.origin_ = path.string();
  std::size_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::filesystem::path part =
        path.parent_path() / (stem + detail::gguf_part_ending(i, count));
    // Moved from once: one part is this file.  NOLINTNEXTLINE(bugprone-use-after-move)
    all.files_.push_back(i == own ? std::move(file) : Gguf::open(part));
    const Gguf& opened = all.files_.back();
    detail::check_gguf_part(opened, "split.count", count);
    detail::check_gguf_part(opened, "split.no", i);
    detail::check_gguf_part(opened, "split.tensors.count", tensors);
    found += opened.tensors().size();
  }
  if (tensors < 0 || found != static_cast<std::size_t>(tensors)) {
    fail<LoadError>(all.origin_, ": the ", count, " parts must hold ", tensors,
                    " tensors together as split.tensors.count says, they hold ", found,
                    "; a part belongs to another model, download the files again");
  }
  for (const Metadata::Entry& entry : all.files_.front().metadata().entries()) {
    if (!entry.key.starts_with("split.")) all.metadata_.insert(entry.key, entry.value);
  }
  const std::less<const std::byte*> before;
  for (std::size_t i = 0; i < all.files_.size(); ++i) {
    const std::span<const TensorInfo> part = all.files_[i].tensors();
    const auto first =
        std::min_element(part.begin(), part.end(), [&](const TensorInfo& a, const TensorInfo& b) {
          return before(a.data.data(), b.data.data());
        });
    if (first != part.end()) all.begins_.emplace_back(first->data.data(), i);
    all.tensors_.insert(all.tensors_.end(), part.begin(), part.end());
  }
  std::sort(all.begins_.begin(), all.begins_.end(),
            [&](const auto& a, const auto& b) { return before(a.first, b.first); });
  all.index_ = TensorIndex(all.tensors_, all.origin_);
  return all;
}

TENON_INLINE void SplitGguf::done_with(std::span<const std::byte> part) const {
  const std::less<const std::byte*> before;
  // The bytes of one file lie side by side, so it is the last one that begins no later.
  const auto behind = std::upper_bound(
      begins_.begin(), begins_.end(), part.data(),
      [&](const std::byte* at, const auto& file) { return before(at, file.first); });
  if (behind != begins_.begin()) files_[std::prev(behind)->second].done_with(part);
}

}  // namespace tenon::inline TENON_ABI
