#pragma once
// Reading and writing safetensors files: named tensors behind a JSON header.
// Source: the format description and the reference implementation of the safetensors project.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/stored_bytes.hpp"
#include "../core/types.hpp"
#include "mapped_file.hpp"

namespace tenon::inline TENON_ABI {

class JsonScanner;

// The element types of the format with the type of the same numbers in GGUF, or -1.
struct SafeType {
  std::string_view name;
  std::size_t bytes;
  int ggml_type;
};
inline constexpr SafeType safe_types[] = {
    {"F32", 4, 0},      {"F16", 2, 1},      {"BF16", 2, 30},    {"F64", 8, 28}, {"I64", 8, 27},
    {"I32", 4, 26},     {"I16", 2, 25},     {"I8", 1, 24},      {"U8", 1, -1},  {"BOOL", 1, -1},
    {"F8_E4M3", 1, -1}, {"F8_E5M2", 1, -1}, {"F8_E8M0", 1, -1}, {"U16", 2, -1}, {"U32", 4, -1},
    {"U64", 8, -1},     {"C64", 8, -1}};

// Null when there is no type of that name.
constexpr const SafeType* find_safe_type(std::string_view name) {
  for (const SafeType& type : safe_types) {
    if (type.name == name) return &type;
  }
  return nullptr;
}
// The type that stores this ggml type's numbers, or null: blocks have none.
constexpr const SafeType* safe_type_of_ggml(int ggml_type) {
  for (const SafeType& type : safe_types) {
    if (type.ggml_type == ggml_type) return &type;
  }
  return nullptr;
}

// `shape` has the slowest axis first; it may be empty (one element) or hold zeros (none).
struct SafeTensor {
  std::string name;
  const SafeType* type = nullptr;
  std::vector<Dim> shape;
  StoredBytes data;
};
using SafeMetadata = std::vector<std::pair<std::string, std::string>>;

// An open safetensors file. Opening reads the header alone, in time linear in it but for a sort of
// its names. What it accepts is what the reference implementation does: a header of at most 100 MB,
// ranges that fit their shapes and cover the data without gaps or overlaps, in any order. Anything
// else, and names that stand there twice, is a LoadError.
class SafeTensors {
 public:
  static SafeTensors open(const std::filesystem::path& path, FileAccess access = FileAccess::map);
  // Takes the bytes of a whole file; `origin` names them in messages.
  static SafeTensors from_bytes(std::vector<std::byte> bytes,
                                std::string origin = "safetensors bytes");

  std::string_view origin() const { return origin_; }
  // In the order of the header.
  std::span<const SafeTensor> tensors() const { return tensors_; }
  const SafeTensor* find(std::string_view name) const;
  const SafeMetadata& metadata() const { return metadata_; }
  // See TensorSource. Bytes that are not of this file are left alone.
  void done_with(std::span<const std::byte> part) const;
  std::shared_ptr<const void> keep_alive() const { return bytes_; }

 private:
  struct Bytes {  // what the tensors point into: one of these two
    MappedFile file;
    std::vector<std::byte> vector;
  };
  SafeTensors(std::string origin, Bytes bytes)
      : origin_(std::move(origin)), bytes_(std::make_shared<const Bytes>(std::move(bytes))) {}

  struct Named {
    std::size_t hash;
    std::uint32_t at;  // in tensors_
  };
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  void parse(std::span<const std::byte> bytes);
  void read_metadata(JsonScanner& scanner);
  std::pair<std::uint64_t, std::uint64_t> read_tensor(JsonScanner& scanner, std::string name);
  void check_cover(const Ranges& ranges, std::uint64_t size) const;
  void check_size(const SafeTensor& tensor, std::uint64_t bytes) const;
  void sort_names();

  std::string origin_;
  std::shared_ptr<const Bytes> bytes_;
  SafeMetadata metadata_;
  std::vector<SafeTensor> tensors_;
  std::vector<Named> by_name_;  // in ascending order of hashes, then names
};

// Writes the tensors as the reference does: wide types first, then by name, the data beginning at a
// multiple of 8. Everything is checked before the first byte goes out: ShapeError for a tensor
// whose bytes, shape and type disagree, RequestError for names that are not distinct UTF-8 or
// belong to the format. CapacityError when the stream refuses bytes.
void write_safetensors(std::ostream& out, std::span<const SafeTensor> tensors,
                       const SafeMetadata& metadata = {});
// The same to a file, which is replaced whole or left as it was.
void write_safetensors(const std::filesystem::path& path, std::span<const SafeTensor> tensors,
                       const SafeMetadata& metadata = {});

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "safetensors.inl"
#endif
