#pragma once
#include "hugging_face.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "hugging_face_reader.inl"
#endif

namespace tenon::inline TENON_ABI {

TENON_INLINE HuggingFaceFolder HuggingFaceFolder::open(const std::filesystem::path& folder) {
#if __has_include(<nlohmann/json.hpp>)
  return detail::FolderReader(folder).read();
#else
  fail<LoadError>(folder.string(),
                  ": a folder must be opened by a tenon built with nlohmann-json, "
                  "this one was built without; install it and build again, or convert the folder "
                  "to GGUF");
#endif
}

TENON_INLINE void HuggingFaceFolder::done_with(std::span<const std::byte> part) const {
  for (const auto& file : files_) file->done_with(part);  // knows its own
}

}  // namespace tenon::inline TENON_ABI
