#pragma once
#include <system_error>
#include <utility>

#include "checkpoint.hpp"
#include "gguf.hpp"
#include "hugging_face.hpp"
#include "split_gguf.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::unique_ptr<const TensorSource> open_checkpoint(
    const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (!std::filesystem::exists(path / "config.json", error)) {
      fail<LoadError>(path.string(),
                      ": must be a .gguf file or a Hugging Face folder with its "
                      "config.json, it is a directory without one; check the path");
    }
    return std::make_unique<const HuggingFaceFolder>(HuggingFaceFolder::open(path));
  }
  const std::string name = path.filename().string();
  if (name == "config.json" || name.ends_with(".safetensors") ||
      name.ends_with(".safetensors.index.json")) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    return std::make_unique<const HuggingFaceFolder>(HuggingFaceFolder::open(folder));
  }
  Gguf file = Gguf::open(path);
  if (!SplitGguf::is_part(file)) return std::make_unique<const Gguf>(std::move(file));
  return std::make_unique<const SplitGguf>(SplitGguf::open(path, std::move(file)));
}

}  // namespace tenon::inline TENON_ABI
