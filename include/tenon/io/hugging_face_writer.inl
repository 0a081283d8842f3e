#pragma once
#include "hugging_face_writer.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "hugging_face_output.inl"
#endif

namespace tenon::inline TENON_ABI {

TENON_INLINE void write_hugging_face(const std::filesystem::path& folder,
                                     const TensorSource& source,
                                     const HuggingFaceOptions& options) {
#if __has_include(<nlohmann/json.hpp>)
  detail::FolderWriter(source, options).write(folder);
#else
  static_cast<void>(source);
  static_cast<void>(options);
  fail<RequestError>(folder.string(),
                     ": a folder must be written by a tenon built with "
                     "nlohmann-json, this one was built without; install it and build again");
#endif
}

}  // namespace tenon::inline TENON_ABI
