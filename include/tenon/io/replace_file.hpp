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

// Calls write(std::ostream&) on a file of a temporary name in the same folder, which then takes the
// place of `path`. When write throws, the disk fills up or the process dies, whatever stood at
// `path` before still does (a killed process may leave the temporary file, PATH.part-*).
// RequestError when the file cannot be created or put in place, CapacityError when its bytes cannot
// be written.
template <class Write>
void replace_file(const std::filesystem::path& target, Write&& write) {
  std::error_code error;
  const auto status = std::filesystem::status(target, error);
  const bool replaces = std::filesystem::exists(status);
  if (replaces && !std::filesystem::is_regular_file(status)) {
    fail<RequestError>(target.string(), ": must name a regular file to write, it is ",
                       std::filesystem::is_directory(status)
                           ? "a directory; name a file inside it"
                           : "a device, pipe or socket; name a file");
  }
  // Behind a symbolic link it is the file that is replaced, not the link.
  std::filesystem::path path = std::filesystem::weakly_canonical(target, error);
  if (error) path = target;
  std::random_device random;
  std::filesystem::path name;
  do {
    name = path;
    name += ".part-" + std::to_string(std::uint32_t{random()});
  } while (std::filesystem::exists(name, error));
  const struct Temporary {
    std::filesystem::path path;
    ~Temporary() {
      std::error_code ignored;  // already renamed, or there is nothing left to try
      std::filesystem::remove(path, ignored);
    }
  } temporary{std::move(name)};

  std::ofstream out(temporary.path, std::ios::binary | std::ios::trunc);
  if (!out) {
    fail<RequestError>(path.string(), ": must be in a folder that can be written to, ",
                       temporary.path.string(),
                       " cannot be created; check the folder and its permissions");
  }
  std::forward<Write>(write)(static_cast<std::ostream&>(out));
  out.close();
  if (!out) {
    fail<CapacityError>(path.string(), ": all bytes must reach the disk, the system refused some; ",
                        "free disk space and write it again");
  }
  if (replaces) std::filesystem::permissions(temporary.path, status.permissions(), error);
  std::filesystem::rename(temporary.path, path, error);
  if (error) {
    fail<RequestError>(path.string(), ": must be replaceable, the system says: ", error.message(),
                       "; check the permissions of the file and its folder");
  }
}

}  // namespace tenon::inline TENON_ABI
