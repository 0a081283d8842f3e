#pragma once
// Opening whatever a user names: a GGUF file, one of several that hold a model, or a folder.
#include <filesystem>
#include <memory>

#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

// `path`: a .gguf file; any one of the files NAME-00001-of-00003.gguf, which opens all of them; or
// a Hugging Face folder (hugging_face.hpp), also by the name of a file in it. LoadError when it is
// none of these, or not sound.
std::unique_ptr<const TensorSource> open_checkpoint(const std::filesystem::path& path);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "checkpoint.inl"
#endif
