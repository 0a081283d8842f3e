// What is written reads back the same; what cannot be written is refused and leaves no trace.
#include <tenon/io/gguf.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/io/replace_file.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <ostream>
#include <span>
#include <sstream>
#include <streambuf>
#include <string>
#include <tenon/core/stored_bytes.hpp>
#include <tenon/core/thread_team.hpp>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "io/gguf_bytes.hpp"
#include "shared_data.hpp"

using namespace tenon;
using test::error_of;
using test::GgufBytes;
using test::missing;

namespace {

std::string written(const Metadata& metadata, std::span<const TensorInfo> tensors) {
  std::ostringstream out;
  write_gguf(out, metadata, tensors);
  return std::move(out).str();
}

// A tensor with `count` bytes 0, 1, 2, ... that this file keeps alive.
TensorInfo tensor(std::string name, int type, std::vector<Dim> shape, std::size_t count) {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
    return all;
  }();
  return {std::move(name), type, std::move(shape), std::span(bytes).first(count)};
}

template <class E>
std::string refusal(const Metadata& metadata, std::vector<TensorInfo> tensors = {}) {
  std::ostringstream out;
  const std::string error = error_of<E>([&] { write_gguf(out, metadata, tensors); });
  CHECK(out.str().empty());  // refused before the first byte
  return error;
}
std::string refusal_of_value(MetaValue value) {
  Metadata metadata;
  metadata.set("key", std::move(value));
  return refusal<RequestError>(metadata);
}

}  // namespace

TEST_CASE("every file at hand, written again, is the same file") {
  const auto root = shared_file("models");
  const auto vocabularies = shared_file("data/tokenizers");
  if (root.empty() || vocabularies.empty()) return;
  const test::TemporaryFolder folder;
  for (const auto& from : {root, vocabularies}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(from)) {
      if (entry.path().extension() != ".gguf") continue;
      INFO(entry.path().string());
      const Gguf gguf = Gguf::open(entry.path());
      write_gguf(folder / "again.gguf", gguf.metadata(), gguf.tensors());
      // Equal bytes: metadata, their types and order, tensors, offsets and padding.
      CHECK(test::read_file(folder / "again.gguf") == test::read_file(entry.path()));
    }
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("a written file is the one built byte by byte") {
  Metadata metadata;
  metadata.set("general.architecture", "llama");
  metadata.set("u32", std::uint32_t{7});
  metadata.set("f32", 0.1f);
  metadata.set("flag", true);
  metadata.set("u8", MetaValue{MetaType::u8, {}, std::uint64_t{255}});
  metadata.set("i8", MetaValue{MetaType::i8, {}, std::int64_t{-128}});
  metadata.set("u16", MetaValue{MetaType::u16, {}, std::uint64_t{65535}});
  metadata.set("i16", MetaValue{MetaType::i16, {}, std::int64_t{-32768}});
  metadata.set("i32", MetaValue{MetaType::i32, {}, std::int64_t{-2147483648}});
  metadata.set("u64", MetaValue{MetaType::u64, {}, ~std::uint64_t{0}});
  metadata.set("i64", MetaValue{MetaType::i64, {}, std::int64_t{INT64_MIN}});
  metadata.set("f64", MetaValue{MetaType::f64, {}, 0.1});
  metadata.set("inf", MetaValue{MetaType::f32, {}, std::numeric_limits<double>::infinity()});
  metadata.set("texts",
               MetaValue{MetaType::array, MetaType::string, std::vector<std::string>{"", "b"}});
  metadata.set("f32s", MetaValue{MetaType::array, MetaType::f32, std::vector<double>{0.5, -1.5}});
  metadata.set("i32s", MetaValue{MetaType::array, MetaType::i32, std::vector<std::int64_t>{1, -1}});
  metadata.set("bools",
               MetaValue{MetaType::array, MetaType::boolean, std::vector<bool>{true, false}});
  const TensorInfo tensors[] = {tensor("a", 0, {3, 2}, 24), tensor("b", 8, {1, 2, 32}, 68)};
  const auto bytes_of = [](const TensorInfo& t) {
    return std::string(reinterpret_cast<const char*>(t.data.data()), t.data.size());
  };
  const std::string expected = GgufBytes{}
                                   .text("general.architecture", "llama")
                                   .u32("u32", 7)
                                   .f32("f32", 0.1f)
                                   .flag("flag", true)
                                   .key("u8", MetaType::u8, "\xff")
                                   .key("i8", MetaType::i8, "\x80")
                                   .key("u16", MetaType::u16, "\xff\xff")
                                   .key("i16", MetaType::i16, std::string("\0\x80", 2))
                                   .key("i32", MetaType::i32, std::string("\0\0\0\x80", 4))
                                   .key("u64", MetaType::u64, std::string(8, '\xff'))
                                   .key("i64", MetaType::i64, std::string(7, '\0') + '\x80')
                                   .key("f64", MetaType::f64, test::raw(0.1))
                                   .f32("inf", std::numeric_limits<float>::infinity())
                                   .texts("texts", {"", "b"})
                                   .f32s("f32s", {0.5f, -1.5f})
                                   .i32s("i32s", {1, -1})
                                   .array("bools", MetaType::boolean, 2, std::string("\1\0", 2))
                                   .tensor("a", 0, {2, 3}, bytes_of(tensors[0]))
                                   .tensor("b", 8, {32, 2, 1}, bytes_of(tensors[1]))
                                   .file();
  CHECK(written(metadata, tensors) == expected);
}

TEST_CASE("the alignment of the metadata is kept") {
  for (const std::uint32_t alignment : {8u, 64u, 4096u}) {
    Metadata metadata;
    metadata.set("general.alignment", alignment);
    const TensorInfo tensors[] = {tensor("a", 24, {1}, 1), tensor("b", 24, {9}, 9)};
    const std::string file = written(metadata, tensors);
    const Gguf gguf = Gguf::from_bytes(GgufBytes::to_bytes(file));
    CHECK(gguf.alignment() == alignment);
    CHECK(file.size() % alignment == 0);
    CHECK(gguf.find("b")->data.data() - gguf.find("a")->data.data() ==
          (alignment == 8 ? 8 : alignment));
    CHECK(gguf.find("b")->data.back() == std::byte{8});
  }
}

TEST_CASE("a file without keys and tensors is a header") {
  const std::string file = written({}, {});
  CHECK(file == "GGUF" + test::raw(3u, std::uint64_t{0}, std::uint64_t{0}));
  CHECK(Gguf::from_bytes(GgufBytes::to_bytes(file)).tensors().empty());
}

TEST_CASE("tensors that disagree with themselves are refused") {
  const auto check = [](TensorInfo bad, std::initializer_list<std::string_view> parts) {
    std::vector<TensorInfo> tensors{tensor("good", 0, {1}, 4), std::move(bad)};
    CHECK(missing(refusal<ShapeError>({}, tensors), parts) == "");
  };
  check(tensor("t", 0, {2, 3}, 23), {"\"t\" [2, 3] of type f32", "24 bytes", "23"});
  check(tensor("t", 0, {2, 3}, 25), {"24 bytes", "25"});
  check(tensor("t", 8, {2, 31}, 62), {"\"t\"", "multiple of 32"});
  check(tensor("t", 4, {32}, 32), {"\"t\"", "type 4"});
  check(tensor("t", 0, {}, 4), {"\"t\"", "1 to 4 axes"});
  check(tensor("t", 0, {1, 1, 1, 1, 1}, 4), {"\"t\"", "1 to 4 axes"});
  check(tensor("t", 0, {0}, 0), {"\"t\"", "at least 1"});
  check(tensor("t", 0, {-1}, 4), {"\"t\"", "at least 1"});
  check(tensor("t", 0, {INT64_MAX, INT64_MAX}, 4), {"\"t\"", "below 2^64"});
}

TEST_CASE("names and keys that the reader would refuse are not written") {
  const auto check = [](std::string name, std::string_view part) {
    CHECK(missing(refusal<RequestError>({}, {tensor(name, 0, {1}, 4)}), {"a tensor name", part}) ==
          "");
    Metadata metadata;
    metadata.set(name, true);
    CHECK(missing(refusal<RequestError>(metadata), {"a metadata key", part}) == "");
  };
  check("", "has 0");
  check(std::string(65536, 'x'), "has 65536");
  check("\xff", "UTF-8");
  CHECK(missing(refusal<RequestError>({}, {tensor("t", 0, {1}, 4), tensor("t", 0, {1}, 4)}),
                {"\"t\"", "distinct"}) == "");
  Metadata metadata;
  metadata.set("general.alignment", std::uint32_t{3});
  CHECK(missing(refusal<RequestError>(metadata), {"general.alignment", "power of two"}) == "");
  for (int i = 0; i < 4096; ++i) metadata.set(std::to_string(i), true);
  metadata.set("general.alignment", std::uint32_t{32});
  CHECK(missing(refusal<RequestError>(metadata), {"at most 4096", "4097"}) == "");
}

TEST_CASE("metadata must hold what its types say") {
  const auto check = [](MetaValue value, std::initializer_list<std::string_view> parts) {
    CHECK(missing(refusal_of_value(std::move(value)), parts) == "");
  };
  check({MetaType::u8, {}, std::uint64_t{256}}, {"\"key\"", "0 to 255", "256"});
  check({MetaType::i8, {}, std::int64_t{-129}}, {"\"key\"", "-128 to 127", "-129"});
  check({MetaType::u16, {}, std::uint64_t{65536}}, {"65535"});
  check({MetaType::i16, {}, std::int64_t{32768}}, {"-32768 to 32767"});
  check({MetaType::u32, {}, std::uint64_t{1} << 32}, {"4294967295"});
  check({MetaType::i32, {}, std::int64_t{1} << 31}, {"2147483647"});
  check({MetaType::f32, {}, 1e39}, {"1e+39"});
  check({MetaType::array, MetaType::u8, std::vector<std::uint64_t>{1, 256}}, {"256"});
  check({MetaType::u32, {}, std::int64_t{1}}, {"\"key\"", "of type u32"});
  check({MetaType::u32, {}, 1.0}, {"\"key\"", "of type u32"});
  check({MetaType::string, {}, true}, {"of type string"});
  check({MetaType::boolean, {}, std::string("yes")}, {"of type bool"});
  check({MetaType::f64, {}, std::vector<double>{1}}, {"of type f64"});
  check({MetaType::array, MetaType::f32, 1.0}, {"of type array of f32"});
  check({MetaType::array, MetaType::string, std::vector<double>{1}}, {"of type string"});
  check({static_cast<MetaType>(13), {}, std::uint64_t{1}}, {"of type unknown"});
}

TEST_CASE("a file is replaced whole or not at all") {
  const test::TemporaryFolder folder;
  const auto path = folder / "model.gguf";
  const TensorInfo good[] = {tensor("t", 0, {1}, 4)};
  write_gguf(path, {}, good);
  const std::string before = test::read_file(path);
  CHECK(Gguf::open(path).tensors().size() == 1);

  const TensorInfo bad[] = {tensor("t", 0, {1}, 5)};
  CHECK_THROWS_AS(write_gguf(path, {}, bad), ShapeError);
  CHECK_THROWS_AS(replace_file(path,
                               [](std::ostream& out) {
                                 out << "half of it";
                                 throw RequestError("interrupted");
                               }),
                  RequestError);
  CHECK(test::read_file(path) == before);
  CHECK(folder.entries() == 1);  // no temporary file is left

  // An open reader keeps the old file while a new one takes its place.
  const Gguf open = Gguf::open(path);
  const TensorInfo other[] = {tensor("t", 0, {2}, 8)};
  write_gguf(path, {}, other);
  CHECK(open.find("t")->data.size() == 4);
  CHECK(open.find("t")->data[3] == std::byte{3});
  CHECK(Gguf::open(path).find("t")->data.size() == 8);

  CHECK(missing(error_of<RequestError>([&] { write_gguf(folder.path(), {}, good); }),
                {folder.path().string(), "directory"}) == "");
  CHECK(missing(error_of<RequestError>([&] { write_gguf(folder / "no/such/folder", {}, good); }),
                {"no/such/folder", "cannot be created"}) == "");
  CHECK(folder.entries() == 1);
}

TEST_CASE("tensors that are made while they are written come out the same whoever makes them") {
  // Byte i of the tensor is i % 251; no two threads are asked for the same.
  struct Counted final : ByteMaker {
    void make(std::size_t first, std::span<std::byte> to) const noexcept override {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::byte>((first + i) % 251);
      made += to.size();
    }
    void done(std::size_t first, std::size_t count) const noexcept override {
      if (first == told) told += count;  // in order, without gaps
    }
    mutable std::atomic<std::size_t> made = 0;
    mutable std::size_t told = 0;
  };
  const test::TemporaryFolder folder;
  constexpr std::size_t size =
      (std::size_t{27} << 20) + 13;  // more than two rounds of three threads
  ThreadTeam team(3);
  Executor* const executors[] = {nullptr, &team};
  std::string files[2];
  for (int i = 0; i < 2; ++i) {
    const Counted maker;
    const TensorInfo tensors[] = {tensor("before", 24, {7}, 7),
                                  {"made", 24, {Dim{size}}, StoredBytes(maker, size)},
                                  tensor("behind", 24, {9}, 9)};
    write_gguf(folder / "made.gguf", {}, tensors, executors[i]);
    CHECK(maker.made == size);
    CHECK(maker.told == size);
    files[i] = test::read_file(folder / "made.gguf");
  }
  CHECK(files[0] == files[1]);
  const Gguf file = Gguf::open(folder / "made.gguf");
  const std::span<const std::byte> bytes = file.find("made")->data;
  REQUIRE(bytes.size() == size);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) wrong += bytes[i] != static_cast<std::byte>(i % 251);
  CHECK(wrong == 0);
  CHECK(std::span<const std::byte>(file.find("behind")->data)[8] == std::byte{8});
}

TEST_CASE("bytes that do not reach the disk are an error") {
  struct Full : std::streambuf {
    int room = 10;
    int_type overflow(int_type c) override { return room-- > 0 ? c : traits_type::eof(); }
  } full;
  std::ostream out(&full);
  const TensorInfo tensors[] = {tensor("t", 0, {1}, 4)};
  CHECK(missing(error_of<CapacityError>([&] { write_gguf(out, {}, tensors); }), {"refused"}) == "");
#if defined(__linux__)
  // The one device that is always full cannot be replaced, but it can be written to.
  std::ofstream device("/dev/full", std::ios::binary);
  if (device) {
    const auto error = error_of<CapacityError>(
        [&] { write_gguf(device, {}, std::vector<TensorInfo>{tensor("t", 24, {65536}, 65536)}); });
    CHECK(missing(error, {"free disk space"}) == "");
  }
#endif
}
