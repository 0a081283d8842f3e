#pragma once
// Writing checkpoints as Hugging Face folders.
#include <cstdint>
#include <filesystem>

#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

struct HuggingFaceOptions {
  // Tensors in block formats are written as F32; without this they are a RequestError.
  bool dequantize = false;
  // A larger checkpoint is written to several safetensors files of about this size.
  std::uint64_t file_bytes = 5'000'000'000;
};

// Writes config.json, safetensors files and what the metadata hold of the other files (see
// HuggingFaceFolder) to `folder`, which is created. A source that came from such a folder gives its
// config.json back; for other GGUF files one is made. Opened again the folder gives the same
// tensors, bit for bit but for what was dequantized and norms of Gemma models below 0.5. Tensors
// are made while they are written, none is kept. RequestError names what the format, or the family,
// cannot express; then nothing is written.
void write_hugging_face(const std::filesystem::path& folder, const TensorSource& source,
                        const HuggingFaceOptions& options = {});

// RequestError when write_hugging_face() could not write to `folder`, of which nothing is made:
// what takes long to make should not be made first.
void check_writable_folder(const std::filesystem::path& folder);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "hugging_face_writer.inl"
#endif
