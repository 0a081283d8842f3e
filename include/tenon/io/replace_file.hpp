#pragma once
// Writing a file so that nobody ever sees half of it.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <ostream>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// A file of a temporary name in the folder of `target`, empty and open, that can take its place.
// Removed in the end, unless it did.
struct Replacement {
  explicit Replacement(const std::filesystem::path& target) {
    std::error_code error;
    status = std::filesystem::status(target, error);
    if (replaces() && !std::filesystem::is_regular_file(status)) {
      fail<RequestError>(target.string(), ": must name a regular file to write, it is ",
                         std::filesystem::is_directory(status)
                             ? "a directory; name a file inside it"
                             : "a device, pipe or socket; name a file");
    }
    // Behind a symbolic link it is the file that is replaced, not the link.
    path = std::filesystem::weakly_canonical(target, error);
    if (error) path = target;
    std::random_device random;
    do {
      temporary = path;
      temporary += ".part-" + std::to_string(std::uint32_t{random()});
    } while (std::filesystem::exists(temporary, error));
    out.open(temporary, std::ios::binary | std::ios::trunc);
    if (!out) {
      fail<RequestError>(path.string(), ": must be in a folder that can be written to, ",
                         temporary.string(),
                         " cannot be created; check the folder and its permissions");
    }
  }
  ~Replacement() {
    out.close();
    std::error_code ignored;  // already renamed, or there is nothing left to try
    std::filesystem::remove(temporary, ignored);
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  bool replaces() const { return std::filesystem::exists(status); }

  std::filesystem::file_status status;  // of what is there
  std::filesystem::path path, temporary;
  std::ofstream out;
};

}  // namespace detail

// RequestError when replace_file() could not write there: what takes long to make should not be
// made first.
inline void check_replaceable(const std::filesystem::path& target) {
  const detail::Replacement tried(target);
}

// Calls write(std::ostream&) on a file of a temporary name in the same folder, which then takes the
// place of `path`. When write throws, the disk fills up or the process dies, whatever stood at
// `path` before still does (a killed process may leave the temporary file, PATH.part-*).
// RequestError when the file cannot be created or put in place, CapacityError when its bytes cannot
// be written.
template <class Write>
void replace_file(const std::filesystem::path& target, Write&& write) {
  detail::Replacement made(target);
  try {
    std::forward<Write>(write)(static_cast<std::ostream&>(made.out));
  } catch (const CapacityError&) {
    if (made.out) throw;  // else the disk is full, which is said below with the file's name
  }
  made.out.close();
  if (!made.out) {
    fail<CapacityError>(made.path.string(),
                        ": all bytes must reach the disk, the system refused some; free disk "
                        "space, or allow larger files, and write it again");
  }
  std::error_code error;
  if (made.replaces()) {
    std::filesystem::permissions(made.temporary, made.status.permissions(), error);
  }
  std::filesystem::rename(made.temporary, made.path, error);
  if (error) {
    fail<RequestError>(made.path.string(),
                       ": must be replaceable, the system says: ", error.message(),
                       "; check the permissions of the file and its folder");
  }
}

}  // namespace tenon::inline TENON_ABI
