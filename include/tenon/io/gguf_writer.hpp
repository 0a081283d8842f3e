#pragma once
// Writing GGUF checkpoints.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>

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

// The same to a file, which is replaced whole or left as it was.
void write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                std::span<const TensorInfo> tensors);

// The same for tensors that are made one after another while the file is written, so that no two of
// them need be in memory: make(i) gives the bytes of tensors[i], whose own `data` is not looked at;
// they stay valid until its next call.
using MakeTensor = std::function<StoredBytes(std::size_t)>;
void write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                std::span<const TensorInfo> tensors, const MakeTensor& make);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "gguf_writer.inl"
#endif
