// Files as bytes: what is refused, by name, and that mapping and reading give the same.
#include <tenon/io/mapped_file.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/stat.h>
#include <unistd.h>
#endif

using namespace tenon;
using test::error_of;
using test::missing;

namespace {
std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}
std::string refusal(const std::filesystem::path& path, FileAccess access) {
  return error_of<LoadError>([&] { MappedFile(path, access); });
}
}  // namespace

TEST_CASE("a mapped file and a read one have the same bytes") {
  const test::TemporaryFolder folder;
  const std::string content("12\0\xff\n4", 6);
  test::write_file(folder / "six", content);
  const MappedFile mapped(folder / "six"), copied(folder / "six", FileAccess::read);
  CHECK(text_of(mapped) == content);
  CHECK(text_of(copied) == content);
  CHECK_FALSE(copied.mapped());
#if defined(__linux__)
  CHECK(mapped.mapped());
#endif
}

TEST_CASE("files move, and leave nothing behind") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "content");
  for (const FileAccess access : {FileAccess::map, FileAccess::read}) {
    MappedFile first(folder / "file", access);
    MappedFile second(std::move(first));
    CHECK(text_of(second) == "content");
    CHECK(first.bytes().empty());  // NOLINT: what a moved-from file is, is the question
    MappedFile third;
    CHECK(third.bytes().empty());
    third = std::move(second);
    CHECK(text_of(third) == "content");
    third = MappedFile();
    CHECK(third.bytes().empty());
  }
}

TEST_CASE("a mapping is given back when its object ends") {
#if defined(__linux__)
  const test::TemporaryFolder folder;
  const auto path = folder / "released-by-its-destructor";
  test::write_file(path, "content");
  const auto is_mapped = [] {
    return test::read_file("/proc/self/maps").find("released-by-its-destructor") !=
           std::string::npos;
  };
  {
    const MappedFile file(path);
    CHECK(is_mapped());
  }
  CHECK_FALSE(is_mapped());
#endif
}

TEST_CASE("pages set aside leave memory and come back when touched") {
#if defined(__linux__)
  const test::TemporaryFolder folder;
  constexpr std::size_t size = 32 << 20;
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; i += 512) content[i] = static_cast<char>(i / 512 % 251);
  test::write_file(folder / "file", content);
  const auto resident = [] {  // bytes of this process in memory
    std::size_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return static_cast<std::ptrdiff_t>(pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  };
  for (const FileAccess access : {FileAccess::map, FileAccess::read}) {
    const MappedFile file(folder / "file", access);
    REQUIRE((text_of(file) == content));
    const std::ptrdiff_t before = resident();
    file.set_aside(file.bytes().subspan(100, size - 200));
    const std::ptrdiff_t freed = before - resident();
    if (file.mapped()) {
      CHECK(freed > static_cast<std::ptrdiff_t>(size) * 3 / 4);
    } else {
      CHECK(freed < static_cast<std::ptrdiff_t>(size) / 4);
    }
    CHECK((text_of(file) == content));
    file.set_aside({});
    file.set_aside(file.bytes().first(1));
    CHECK((text_of(file) == content));
  }
#endif
}

TEST_CASE("what is no readable file is refused by its path") {
  const test::TemporaryFolder folder;
  const FileAccess access = GENERATE(FileAccess::map, FileAccess::read);
  const auto check = [&](const std::filesystem::path& path, std::string_view reason) {
    CHECK(missing(refusal(path, access), {path.string(), reason}) == "");
  };
  check(folder / "absent.gguf", "nothing of that name");
  check(folder / "no-folder/absent.gguf", "nothing of that name");
  check(folder.path(), "it is a directory");
  test::write_file(folder / "empty", "");
  check(folder / "empty", "it is empty");
#if defined(__unix__) || defined(__APPLE__)
  check("/dev/zero", "must be a regular file");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  check(folder / "pipe", "must be a regular file");
  test::write_file(folder / "file", "x");
  check(folder / "file/below", "nothing of that name");

  // Permissions bind everybody but root, so root becomes nobody for a moment.
  test::write_file(folder / "secret", "content");
  std::filesystem::permissions(folder / "secret", std::filesystem::perms::none);
  const uid_t user = geteuid();
  if (user == 0) REQUIRE(seteuid(65534) == 0);
  const std::string refused = refusal(folder / "secret", access);
  if (user == 0) REQUIRE(seteuid(user) == 0);
  CHECK(missing(refused, {(folder / "secret").string(), "must be readable, the system says"}) ==
        "");
#endif
}
