#pragma once
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <ios>
#include <limits>
#include <system_error>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "mapped_file.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE MappedFile::MappedFile(const std::filesystem::path& path, FileAccess access) {
  check_kind(path);
  if (access == FileAccess::read || !map(path)) read(path);
}

TENON_INLINE std::span<const std::byte> MappedFile::bytes() const {
  if (mapping_) return {mapping_.get(), mapping_.get_deleter().bytes};
  return {copy_.data(), copy_.size()};
}

TENON_INLINE void MappedFile::set_aside(std::span<const std::byte> part) const noexcept {
#if defined(__unix__) || defined(__APPLE__)
  if (!mapping_ || part.empty()) return;
  auto* const mapping = const_cast<std::byte*>(mapping_.get());
  const std::size_t bytes = mapping_.get_deleter().bytes;
  // One fault may bring as much as a huge page, of parts too that were done with before: all that
  // it may have brought goes. What is still needed of it comes back from the system's cache.
  constexpr std::size_t most_a_fault = std::size_t{2} << 20;
  const std::size_t from = static_cast<std::size_t>(part.data() - mapping);
  const std::size_t first = from / most_a_fault * most_a_fault;
  const std::size_t last = (std::min)(round_up(from + part.size(), most_a_fault), bytes);
  ::madvise(mapping + first, last - first, MADV_DONTNEED);
#else
  static_cast<void>(part);
#endif
}

TENON_INLINE void MappedFile::Unmap::operator()(const std::byte* at) const {
#if defined(__unix__) || defined(__APPLE__)
  ::munmap(const_cast<std::byte*>(at), bytes);
#else
  static_cast<void>(at);
#endif
}

TENON_INLINE void MappedFile::check_kind(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    fail<LoadError>(path.string(),
                    ": must be a file, there is nothing of that name; check the path");
  }
  if (error) refuse_unreadable(path, error.message());
  if (std::filesystem::is_directory(status)) {
    fail<LoadError>(path.string(), ": must be a file, it is a directory; name a file inside it");
  }
  // Opening a pipe would wait for a writer, and a device may never end.
  if (!std::filesystem::is_regular_file(status)) {
    fail<LoadError>(path.string(),
                    ": must be a regular file, it is a device, pipe or socket; copy it to a file");
  }
}

TENON_INLINE void MappedFile::refuse_unreadable(const std::filesystem::path& path,
                                                const std::string& reason) {
  fail<LoadError>(path.string(), ": must be readable, the system says: ", reason,
                  "; check the permissions of the file and its folders");
}

TENON_INLINE std::size_t MappedFile::checked_size(const std::filesystem::path& path,
                                                  std::uintmax_t bytes) {
  if (bytes == 0) {
    fail<LoadError>(path.string(), ": must hold data, it is empty; download or convert it again");
  }
  if (bytes > (std::numeric_limits<std::size_t>::max)() / 2) {
    fail<LoadError>(path.string(), ": must fit the address space of this process, it has ", bytes,
                    " bytes; use a 64-bit build or a smaller file");
  }
  return static_cast<std::size_t>(bytes);
}

TENON_INLINE bool MappedFile::map(const std::filesystem::path& path) {
#if defined(__unix__) || defined(__APPLE__)
  static_assert(sizeof(off_t) >= 8,
                "tenon: file offsets must have 64 bits; define _FILE_OFFSET_BITS=64");
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse_unreadable(path, std::generic_category().message(errno));
  const struct Close {
    int file;
    ~Close() { ::close(file); }
  } close{file};
  struct stat info {};
  if (::fstat(file, &info) != 0) refuse_unreadable(path, std::generic_category().message(errno));
  const std::size_t bytes = checked_size(path, static_cast<std::uintmax_t>(info.st_size));
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) return false;
  mapping_ = {static_cast<const std::byte*>(at), Unmap{bytes}};
  return true;
#else
  static_cast<void>(path);
  return false;
#endif
}

TENON_INLINE void MappedFile::read(const std::filesystem::path& path) {
  static_assert(sizeof(std::streamoff) >= 8, "tenon: file offsets must have 64 bits");
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) refuse_unreadable(path, error.message());
  const std::size_t bytes = checked_size(path, size);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_unreadable(path, std::generic_category().message(errno ? errno : EIO));
  AlignedBuffer copy(bytes);
  file.read(reinterpret_cast<char*>(copy.data()), static_cast<std::streamsize>(bytes));
  if (static_cast<std::size_t>(file.gcount()) != bytes) {
    fail<LoadError>(path.string(), ": must give its ", bytes, " bytes, reading stopped after ",
                    file.gcount(), "; it changed meanwhile or its disk is failing, try again");
  }
  copy_ = std::move(copy);
}

}  // namespace tenon::inline TENON_ABI
