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

// Whether a name ends as that of one of at least two parts does.
inline bool named_as_gguf_part(std::string_view name) {
  constexpr std::string_view ending = "-00001-of-00001.gguf";  // any digits
  if (name.size() < ending.size()) return false;
  name.remove_prefix(name.size() - ending.size());
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < ending.size(); ++i) {
    if (digit(ending[i]) ? !digit(name[i]) : name[i] != ending[i]) return false;
  }
  return name.substr(10, 5) > "00001";
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
  return file.metadata().contains("split.count");
}

TENON_INLINE SplitGguf SplitGguf::open(const std::filesystem::path& path, Gguf file) {
  const std::int64_t count = detail::gguf_part_key(file, "split.count");
  SplitGguf all;
  all.origin_ = path.string();
  if (count == 0 || count == 1) {
    all.add_merged(path, std::move(file));
  } else {
    all.add_parts(path, std::move(file), count);
  }
  all.join();
  return all;
}

// gguf-split --merge leaves the keys of the first part, but for a split.count of 0.
TENON_INLINE void SplitGguf::add_merged(const std::filesystem::path& path, Gguf file) {
  const Metadata& metadata = file.metadata();
  const std::int64_t no = metadata.contains("split.no") ? metadata.integer("split.no") : 0;
  const auto found = static_cast<std::int64_t>(file.tensors().size());
  constexpr std::string_view key = "split.tensors.count";
  const std::int64_t tensors = metadata.contains(key) ? metadata.integer(key) : found;
  if (no != 0 || tensors != found || detail::named_as_gguf_part(path.filename().string())) {
    fail<LoadError>(file.origin(), ": metadata key \"split.count\" must be the number of files, 2 ",
                    "or more, in a file that by its name, split.no (", no, ") and ", key, " (",
                    tensors, ", it holds ", found, ") is one of several, it is ",
                    metadata.integer("split.count"), "; the file is damaged, download it again");
  }
  files_.push_back(std::move(file));
}

TENON_INLINE void SplitGguf::add_parts(const std::filesystem::path& path, Gguf file,
                                       std::int64_t count) {
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
  std::size_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::filesystem::path part =
        path.parent_path() / (stem + detail::gguf_part_ending(i, count));
    // Moved from once: one part is this file.  NOLINTNEXTLINE(bugprone-use-after-move)
    files_.push_back(i == own ? std::move(file) : Gguf::open(part));
    const Gguf& opened = files_.back();
    detail::check_gguf_part(opened, "split.count", count);
    detail::check_gguf_part(opened, "split.no", i);
    detail::check_gguf_part(opened, "split.tensors.count", tensors);
    found += opened.tensors().size();
  }
  if (tensors < 0 || found != static_cast<std::size_t>(tensors)) {
    fail<LoadError>(origin_, ": the ", count, " parts must hold ", tensors,
                    " tensors together as split.tensors.count says, they hold ", found,
                    "; a part belongs to another model, download the files again");
  }
}

TENON_INLINE void SplitGguf::join() {
  for (const Metadata::Entry& entry : files_.front().metadata().entries()) {
    if (!entry.key.starts_with("split.")) metadata_.insert(entry.key, entry.value);
  }
  const std::less<const std::byte*> before;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::span<const TensorInfo> part = files_[i].tensors();
    const auto first =
        std::min_element(part.begin(), part.end(), [&](const TensorInfo& a, const TensorInfo& b) {
          return before(a.data.data(), b.data.data());
        });
    if (first != part.end()) begins_.emplace_back(first->data.data(), i);
    tensors_.insert(tensors_.end(), part.begin(), part.end());
  }
  std::sort(begins_.begin(), begins_.end(),
            [&](const auto& a, const auto& b) { return before(a.first, b.first); });
  index_ = TensorIndex(tensors_, origin_);
}

// Of several files the parts, which own their bytes each, would be needed.
TENON_INLINE std::shared_ptr<const void> SplitGguf::keep_alive() const {
  return files_.size() == 1 ? files_.front().keep_alive() : nullptr;
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
