#pragma once
// Reading GGUF checkpoints.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/memory.hpp"
#include "../core/metadata.hpp"
#include "mapped_file.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

class ByteReader;

// An open GGUF file, version 2 or 3, little-endian. Opening reads the header and no tensor data; it
// takes time linear in the header and memory bounded by a small multiple of it, whatever the bytes
// say. What it accepts is sound: distinct UTF-8 names and keys, known types, and tensors that lie
// aligned, whole and apart from each other inside the file. Anything else is a LoadError.
class Gguf final : public TensorSource {
 public:
  Gguf(Gguf&&) = default;
  Gguf& operator=(Gguf&&) = default;

  static Gguf open(const std::filesystem::path& path, FileAccess access = FileAccess::map);
  // Takes the bytes of a whole file; `origin` names them in messages.
  static Gguf from_bytes(std::vector<std::byte> bytes, std::string origin = "GGUF bytes");

  std::string_view origin() const override { return origin_; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override { return index_.find(name); }
  void done_with(std::span<const std::byte> part) const override { bytes_->file.set_aside(part); }
  std::shared_ptr<const void> keep_alive() const override { return bytes_; }
  int version() const { return static_cast<int>(version_); }
  // Every tensor's data starts at a multiple of this from the start of the data, and so of 8.
  std::uint64_t alignment() const { return alignment_; }

 private:
  struct Bytes {  // what the tensors point into: one of these two
    MappedFile file;
    std::vector<std::byte> vector;
  };

  Gguf(std::string origin, Bytes bytes)
      : origin_(std::move(origin)), bytes_(std::make_shared<const Bytes>(std::move(bytes))) {}

  void parse(std::span<const std::byte> bytes);
  void read_version(ByteReader& reader);
  void read_entry(ByteReader& reader);
  MetaType read_type(ByteReader& reader, std::string_view key) const;
  void read_scalar(ByteReader& reader, std::string_view key, MetaValue& value) const;
  void read_array(ByteReader& reader, std::string_view key, MetaValue& value) const;

  // Stored items of type T, widened to Wide.
  template <class T, class Wide>
  static std::vector<Wide> numbers(ByteReader& reader, std::string_view key);
  bool truth(std::byte stored, std::string_view key) const;

  // Appends the next tensor, without its data; returns the offset of that.
  std::uint64_t read_tensor(ByteReader& reader);

  // Points every tensor to its data, which begins at the next multiple of the alignment.
  void place(ByteReader& reader, std::span<const std::uint64_t> offsets);
  void check_apart() const;

  std::string origin_;
  std::shared_ptr<const Bytes> bytes_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  TensorIndex index_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "gguf.inl"
#endif
