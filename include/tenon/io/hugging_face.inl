#pragma once
#include "hugging_face.hpp"
#include "hugging_face_reader.inl"

namespace tenon::inline TENON_ABI {

TENON_INLINE HuggingFaceFolder HuggingFaceFolder::open(const std::filesystem::path& folder) {
  return detail::FolderReader(folder).read();
}

TENON_INLINE void HuggingFaceFolder::done_with(std::span<const std::byte> part) const {
  for (const auto& file : files_) file->done_with(part);  // knows its own
}

}  // namespace tenon::inline TENON_ABI
