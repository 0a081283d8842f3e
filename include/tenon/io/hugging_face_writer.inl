#pragma once
#include <filesystem>
#include <string>
#include <system_error>

#include "hugging_face_output.inl"
#include "hugging_face_writer.hpp"
#include "replace_file.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void write_hugging_face(const std::filesystem::path& folder,
                                     const TensorSource& source,
                                     const HuggingFaceOptions& options) {
  detail::FolderWriter(source, options).write(folder);
}

TENON_INLINE void check_writable_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // What is missing of the path will be made inside the last folder that is there.
  fs::path there = folder.lexically_normal(), missing;
  if (!there.has_filename()) there = there.parent_path();  // NAME/ is NAME
  if (there.empty()) there = ".";
  while (!fs::exists(fs::symlink_status(there, ignored))) {
    missing = there.filename();
    there = there.has_parent_path() ? there.parent_path() : fs::path(".");
  }
  if (!fs::is_directory(there, ignored)) {
    fail<RequestError>(folder.string(), ": must be a folder or the name of a new one, ",
                       there.string(), " is no folder; name another");
  }
  if (!missing.empty()) return check_replaceable(there / missing);
  check_replaceable(there / "config.json");
  for (const fs::directory_entry& entry : fs::directory_iterator(there, ignored)) {
    if (detail::FolderWriter::writes(entry.path().filename().string())) {
      check_replaceable(entry.path());
    }
  }
}

}  // namespace tenon::inline TENON_ABI
