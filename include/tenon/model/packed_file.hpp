#pragma once
// Checkpoints whose matrices are stored as PackedMatrix holds them, so that a bind maps them. Such
// a file is a GGUF with the metadata of the original and the keys below; a packed tensor is a list
// of i8 under its old name, so that no other reader takes it for a matrix.
//
//   general.alignment      a multiple of a cache line
//   tenon.packed.version   u32: of these keys
//   tenon.packed.names     [n] the packed tensors; the arrays that follow are in this order
//   tenon.packed.types     [n] u32: ggml types of the originals
//   tenon.packed.ranks     [n] u32: axes of the originals
//   tenon.packed.shapes    u64: the originals' sizes, slowest first, one tensor after another
//   tenon.packed.layouts   [n] u64: PackedMatrix::layout_signature of the format
//   tenon.packed.digests   [n] u64: tensor_digest of the originals, for the model's fingerprint
//   tenon.packed.checksums [n] u64: packed_checksum of the bytes
//
// A stack [count, out, in] is `count` packed matrices, each padded with zeros to a cache line.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../core/executor.hpp"
#include "../io/tensor_source.hpp"

namespace tenon::inline TENON_ABI {

// `tensor` has the name, type and shape of the original; its data are the packed bytes.
struct PackedTensor {
  TensorInfo tensor;
  const TensorInfo* stored = nullptr;  // as it stands in the source; null while one is made
  std::uint64_t layout = 0, digest = 0, checksum = 0;
};

// The packed tensors of a source, none in an ordinary checkpoint. LoadError when the keys, the
// tensors and the bytes that exist do not belong together.
class PackedFile {
 public:
  explicit PackedFile(const TensorSource& source);

  // Null when the tensor of that name is not packed.
  const PackedTensor* find(std::string_view name) const;
  // LoadError when bytes have changed since they were written; reads them all.
  void verify(std::string_view origin, Executor& executor) const;

 private:
  std::unordered_map<std::string_view, PackedTensor> tensors_;  // by names of the metadata
};

// What a bind packed, to be written: give it as BindOptions::packed. It keeps the bytes.
class PackedLog {
 public:
  void add(PackedTensor tensor, std::shared_ptr<const void> owner);
  // A tensor that a model takes apart, so that it must stay as it is.
  void keep_apart(std::string_view name) { apart_.insert(std::string(name)); }

 private:
  friend void write_packed(const std::filesystem::path&, const TensorSource&, const PackedLog&,
                           Executor&);
  struct Entry {
    PackedTensor tensor;
    std::shared_ptr<const void> owner;
  };
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_set<std::string> apart_;
};

// Writes `source`, from which a model was bound with that log, as a packed file. A model bound to
// it has the same bits and the same fingerprint. What the bind did not pack as a whole (vectors,
// tensors that a model takes apart) is written as it is. Errors as of write_gguf().
void write_packed(const std::filesystem::path& path, const TensorSource& source,
                  const PackedLog& log, Executor& executor);

// Of parts of 4 MiB, computed on all threads and taken together in their order.
std::uint64_t packed_checksum(std::span<const std::byte> bytes, Executor& executor);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "packed_file.inl"
#endif
