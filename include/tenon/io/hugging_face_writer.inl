#pragma once
#include "hugging_face_output.inl"
#include "hugging_face_writer.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void write_hugging_face(const std::filesystem::path& folder,
                                     const TensorSource& source,
                                     const HuggingFaceOptions& options) {
  detail::FolderWriter(source, options).write(folder);
}

}  // namespace tenon::inline TENON_ABI
