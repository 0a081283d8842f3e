#pragma once
// A whole file as read-only bytes: mapped where the system can, read into memory otherwise.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "../core/error.hpp"
#include "../core/memory.hpp"

namespace tenon::inline TENON_ABI {

enum class FileAccess {
  map,   // pages come in when touched; the file must not shrink while it is open
  read,  // a private copy, which later changes of the file cannot reach
};

// Bytes of a regular, non-empty file. The size is asked for once, when it is opened; bytes() is
// that range for as long as the object lives, and its destructor gives the mapping back. Offsets
// are 64 bits wide. Throws LoadError naming the path when there is no such file, or it is a
// directory, a device, empty or unreadable; CapacityError when a copy does not fit into memory.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path, FileAccess access = FileAccess::map);
  std::span<const std::byte> bytes() const;
  // True for a mapping, false for a copy.
  bool mapped() const { return mapping_ != nullptr; }

  // Lets the system take back the memory of `part`, a part of bytes(): what lies in it is read from
  // the file again when it is touched again. Does nothing for a copy. Any thread may call it.
  void set_aside(std::span<const std::byte> part) const noexcept;

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(const std::byte* at) const;
  };

  static void check_kind(const std::filesystem::path& path);
  [[noreturn]] static void refuse_unreadable(const std::filesystem::path& path,
                                             const std::string& reason);
  static std::size_t checked_size(const std::filesystem::path& path, std::uintmax_t bytes);

  // False when this system or file system cannot map the file.
  bool map(const std::filesystem::path& path);
  void read(const std::filesystem::path& path);

  std::unique_ptr<const std::byte, Unmap> mapping_;
  AlignedBuffer copy_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "mapped_file.inl"
#endif
