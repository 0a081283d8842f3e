#pragma once
// Writing GGUF checkpoints.
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <span>

#include "../core/executor.hpp"
#include "../core/metadata.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

// Writes a GGUF 3 file to `out`: the metadata in its order, then the tensors in theirs (shape
// slowest axis first, data as TensorInfo says), each padded to `general.alignment` of the metadata,
// or 32. Everything is checked before the first byte goes out: ShapeError for a tensor whose bytes,
// shape and type disagree, RequestError for names and metadata that the format cannot hold.
// CapacityError when the stream refuses bytes. Reading the result gives back the same metadata and
// bytes.
void write_gguf(std::ostream& out, const Metadata& metadata, std::span<const TensorInfo> tensors);

// The same to a file, which is replaced whole or left as it was. With a team, its threads share the
// making of tensors that are made while they are read.
void write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                std::span<const TensorInfo> tensors, Executor* team = nullptr);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "gguf_writer.inl"
#endif
