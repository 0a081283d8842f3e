// GGUF files that lie. Each is refused by a LoadError that names what is wrong; none crashes, hangs
// or makes the reader allocate more than its own size justifies.
#include <tenon/io/ggml_types.hpp>
#include <tenon/io/gguf.hpp>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "io/gguf_bytes.hpp"
#include "shared_data.hpp"

using namespace tenon;
using test::GgufBytes;
using test::missing;
using test::raw;
using test::raw_text;

namespace {

// The refusal of these bytes, which must come at once and without memory.
std::string refusal(std::string_view file) {
  std::vector<std::byte> bytes = GgufBytes::to_bytes(file);
  std::string error;
  const std::clock_t start = std::clock();
  const std::size_t allocated = test::bytes_allocated_by([&] {
    error = test::error_of<LoadError>([&] { Gguf::from_bytes(std::move(bytes), "hostile.gguf"); });
  });
  CHECK(allocated < (1u << 20));
  CHECK(std::clock() - start < CLOCKS_PER_SEC / 100);  // of processor time
  return error;
}
std::string refusal(const GgufBytes& file) {
  return refusal(file.file());
}

constexpr std::uint64_t absurd[] = {std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                    std::uint64_t{1} << 60, std::uint64_t{1} << 62,
                                    std::uint64_t{1} << 63, ~std::uint64_t{0}};

GgufBytes small_file() {
  return GgufBytes{}
      .text("general.architecture", "llama")
      .u32("llama.block_count", 1)
      .f32s("scores", {0.5f, 1.5f})
      .texts("tokens", {"a", "bc"})
      .flag("flag", true)
      .f32_tensor("one", {2, 3}, {1, 2, 3, 4, 5, 6})
      .f32_tensor("two", {8}, {1, 2, 3, 4, 5, 6, 7, 8});
}

}  // namespace

TEST_CASE("a file that is no GGUF is refused by its first bytes") {
  CHECK(missing(refusal("PK\3\4 and so on, a zip archive"),
                {"hostile.gguf", "\"GGUF\"", "PK\\x03\\x04"}) == "");
  CHECK(missing(refusal("ggjt\3\0\0\0"), {"ggjt", "convert"}) == "");
  CHECK(missing(refusal("FUGG"), {"FUGG"}) == "");
  CHECK(missing(refusal(""), {"magic", "0 left"}) == "");
  CHECK(missing(refusal("GGU"), {"magic", "3 left"}) == "");
}

TEST_CASE("other versions and big-endian files are refused as what they are") {
  for (const std::uint32_t version : {0u, 1u, 4u, 99u, 65535u, 65537u}) {
    GgufBytes file = small_file();
    file.version = version;
    CHECK(missing(refusal(file),
                  {"hostile.gguf", "version must be 2 or 3", std::to_string(version)}) == "");
  }
  for (const std::uint32_t version : {0x01000000u, 0x02000000u, 0x03000000u}) {
    GgufBytes file = small_file();
    file.version = version;
    CHECK(missing(refusal(file), {"must be little-endian", "big-endian"}) == "");
  }
}

TEST_CASE("a file cut at any byte is refused") {
  const std::string whole = small_file().file();
  const std::size_t data_end = whole.size();  // 24 bytes padded to 32, then 32
  for (std::size_t bytes = 0; bytes < data_end; ++bytes) {
    INFO(bytes << " of " << whole.size());
    CHECK(missing(refusal(whole.substr(0, bytes)), {"hostile.gguf", "cut short"}) == "");
  }
  CHECK_NOTHROW(Gguf::from_bytes(GgufBytes::to_bytes(whole)));
}

TEST_CASE("a file cut in the padding behind its last tensor is refused, one without any is whole") {
  GgufBytes file = small_file();
  file.f32_tensor("three", {3}, {1, 2, 3});
  const std::string padded = file.file();
  REQUIRE(padded.size() % 32 == 0);
  const std::size_t unpadded = padded.size() - 20;  // 12 bytes of the last tensor, 20 behind them
  for (std::size_t bytes = unpadded - 12; bytes < padded.size(); ++bytes) {
    INFO(bytes << " of " << padded.size());
    const std::string error = refusal(padded.substr(0, bytes));
    if (bytes == unpadded) {
      CHECK(error.empty());
    } else {
      CHECK(missing(error, {"hostile.gguf", "cut short"}) == "");
    }
  }
  CHECK(refusal(padded).empty());
  CHECK(refusal(padded + "more").empty());
}

TEST_CASE("a model cut inside any tensor is refused by that tensor's name") {
  const auto path = shared_file("models/stories260K.gguf");
  if (path.empty()) return;
  const test::TemporaryFolder folder;
  const std::string whole = test::read_file(path);
  const Gguf gguf = Gguf::open(path);
  const auto file = folder / "cut.gguf";
  test::write_file(file, whole);
  const std::size_t data = 14336;  // where the data of this file begins
  const std::byte* origin = gguf.tensors()[0].data.data() - data;
  for (std::size_t i = gguf.tensors().size(); i-- > 0;) {
    const TensorInfo& tensor = gguf.tensors()[i];
    const auto start = static_cast<std::size_t>(tensor.data.data() - origin);
    for (const std::size_t cut :
         {start + tensor.data.size() - 1, start + tensor.data.size() / 2, start + 1, start}) {
      INFO(tensor.name << " cut at " << cut);
      std::filesystem::resize_file(file, cut);
      for (const FileAccess access : {FileAccess::map, FileAccess::read}) {
        const auto error = test::error_of<LoadError>([&] { Gguf::open(file, access); });
        CHECK(missing(error, {file.string(), "\"" + tensor.name + "\"", "cut short"}) == "");
      }
    }
  }
}

TEST_CASE("counts and lengths beyond the file are refused before memory is taken for them") {
  for (const std::uint64_t count : absurd) {
    INFO(count);
    const std::string number = std::to_string(count);
    {
      GgufBytes file = small_file();
      file.claimed_tensors = count;
      CHECK(missing(refusal(file), {"number of tensors", number}) == "");
    }
    {
      GgufBytes file = small_file();
      file.claimed_keys = count;
      CHECK(missing(refusal(file), {"number of metadata keys", number}) == "");
    }
    const std::string tail(100, 'x');
    CHECK(missing(refusal("GGUF" + raw(3u, std::uint64_t{0}, std::uint64_t{1}, count) + tail),
                  {"a metadata key", number}) == "");
    CHECK(missing(refusal(GgufBytes{}.key("k", MetaType::string, raw(count) + tail)),
                  {"the value of \"k\"", number}) == "");
    CHECK(missing(refusal(GgufBytes{}.array("k", MetaType::string, 1, raw(count) + tail)),
                  {"an item of \"k\"", number}) == "");
    for (const MetaType item : {MetaType::u8, MetaType::i8, MetaType::u16, MetaType::i16,
                                MetaType::u32, MetaType::i32, MetaType::f32, MetaType::boolean,
                                MetaType::string, MetaType::u64, MetaType::i64, MetaType::f64}) {
      INFO(name_of(item));
      CHECK(missing(refusal(GgufBytes{}.array("k", item, count, tail)),
                    {"the array of \"k\"", number}) == "");
    }
    CHECK(missing(refusal("GGUF" + raw(3u, std::uint64_t{1}, std::uint64_t{0}, count) + tail),
                  {"a tensor name", number}) == "");
  }
}

TEST_CASE("counts just beyond the file are refused too") {
  GgufBytes file;
  file.claimed_tensors = 1;
  CHECK(missing(refusal(file), {"number of tensors", "at most 0"}) == "");
  file = small_file();
  ++file.keys;
  CHECK(refusal(file) != "");
  file = small_file();
  ++file.tensors;
  CHECK(refusal(file) != "");
  CHECK(missing(refusal(GgufBytes{}.array("k", MetaType::u16, 3, "12345")),
                {"at most 2", "it is 3"}) == "");
  CHECK(missing(refusal(GgufBytes{}.array("k", MetaType::string, 2, raw_text("12345678"))),
                {"\"k\""}) == "");
}

TEST_CASE("more keys than any model has are refused") {
  GgufBytes file;
  for (int i = 0; i < 4097; ++i) file.flag(std::to_string(i), true);
  CHECK(missing(refusal(file), {"at most 4096", "4097"}) == "");
}

TEST_CASE("sizes of zero and absurd ranks are refused, wherever they stand") {
  // 65 bytes that once divided by zero inside an overflow check.
  const std::string trigger = GgufBytes{}.tensor_at("t", 0, {1, 0}, 0).file();
  REQUIRE(trigger.size() >= 65);
  CHECK(missing(refusal(trigger.substr(0, 65)), {"hostile.gguf"}) == "");
  CHECK(missing(refusal(trigger), {"\"t\"", "at least 1", "[0, 1]"}) == "");
  for (std::size_t rank = 1; rank <= 4; ++rank) {
    for (std::size_t zero = 0; zero < rank; ++zero) {
      std::vector<std::uint64_t> sizes(rank, 32);
      sizes[zero] = 0;
      for (const int type : {0, 2, 12}) {
        CHECK(missing(refusal(GgufBytes{}.tensor("t", type, sizes, "")), {"\"t\"", "at least 1"}) ==
              "");
      }
    }
  }
  for (const std::uint32_t rank : {0u, 5u, 255u, 0x7fffffffu, 0xffffffffu}) {
    GgufBytes file;
    file.infos = raw_text("t") + raw(rank) + std::string(200, '\1');
    file.tensors = 1;
    CHECK(missing(refusal(file), {"\"t\"", "1 to 4 axes", std::to_string(rank)}) == "");
  }
}

TEST_CASE("sizes whose product leaves 64 bits are refused for every type") {
  for (const GgmlType& type : ggml_types) {
    INFO(type.name);
    // Rows so many that the bytes are 2^64 plus less than a row: they would wrap to next to
    // nothing.
    const std::uint64_t row = 4 * type.block_bytes;
    const auto rows = static_cast<std::uint64_t>((~std::uint64_t{0}) / row) + 1;
    const auto width = static_cast<std::uint64_t>(4 * type.block);
    CHECK(missing(refusal(GgufBytes{}.tensor("t", type.id, {width, rows}, std::string(64, 'x'))),
                  {"\"t\"", "below 2^64"}) == "");
    CHECK(missing(refusal(GgufBytes{}.tensor(
                      "t", type.id, {width, std::uint64_t{1} << 31, std::uint64_t{1} << 31}, "x")),
                  {"\"t\"", "t"}) == "");
    // The largest multiple of the block, alone and times the largest size.
    const std::uint64_t most = static_cast<std::uint64_t>(INT64_MAX / type.block * type.block);
    CHECK(missing(refusal(GgufBytes{}.tensor("t", type.id, {most}, "x")), {"\"t\""}) == "");
    CHECK(missing(refusal(GgufBytes{}.tensor("t", type.id, {most, most, most, most}, "x")),
                  {"\"t\"", "below 2^64"}) == "");
  }
  for (const std::uint64_t size : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    CHECK(missing(refusal(GgufBytes{}.tensor("t", 0, {1, size}, "1234")),
                  {"\"t\"", "below 2^63", std::to_string(size)}) == "");
  }
  // 2^42 + 1 rows of a real shape, from a report.
  CHECK(missing(refusal(GgufBytes{}.tensor(
                    "t", 0, {std::uint64_t{1} << 20, (std::uint64_t{1} << 42) + 1}, "1234")),
                {"below 2^64"}) == "");
}

TEST_CASE("unknown tensor types are refused by number") {
  for (const int type : {-1, 4, 5, 31, 38, 43, 1000, std::numeric_limits<int>::max(),
                         std::numeric_limits<int>::min()}) {
    CHECK(missing(refusal(GgufBytes{}.tensor("t", type, {32}, std::string(128, 'x'))),
                  {"\"t\"", "type " + std::to_string(type)}) == "");
  }
}

TEST_CASE("rows that are no whole number of blocks are refused") {
  for (const std::uint64_t width : {1u, 14u, 31u, 33u, 172u}) {
    CHECK(missing(refusal(GgufBytes{}.tensor("t", 8, {width, 32}, std::string(4096, 'x'))),
                  {"\"t\"", "multiple of 32", "q8_0"}) == "");
  }
  CHECK(missing(refusal(GgufBytes{}.tensor("t", 12, {896, 4}, std::string(4096, 'x'))),
                {"multiple of 256", "q4_K", "[4, 896]"}) == "");
}

TEST_CASE("names and keys that stand twice are refused") {
  CHECK(missing(refusal(GgufBytes{}.u32("key", 1).flag("other", true).u32("key", 1)),
                {"distinct", "\"key\""}) == "");
  CHECK(missing(refusal(GgufBytes{}.f32_tensor("t", {1}, {1}).f32_tensor("t", {1}, {1})),
                {"distinct", "\"t\""}) == "");
}

TEST_CASE("names and keys must be UTF-8 of a sane length") {
  for (const std::string name : {"\xff", "ab\xc3", "\xc0\x80", "\xed\xa0\x80"}) {
    CHECK(missing(refusal(GgufBytes{}.u32(name, 1)), {"a metadata key must be UTF-8", "\\x"}) ==
          "");
    CHECK(missing(refusal(GgufBytes{}.f32_tensor(name, {1}, {1})),
                  {"a tensor name must be UTF-8", "\\x"}) == "");
  }
  CHECK(missing(refusal(GgufBytes{}.u32("", 1)), {"a metadata key", "has 0", "1 to 65535"}) == "");
  for (const std::size_t length : {65536u, 200000u}) {
    const std::string name(length, 'n');
    CHECK(missing(refusal(GgufBytes{}.u32(name, 1)), {"a metadata key", std::to_string(length)}) ==
          "");
    CHECK(missing(refusal(GgufBytes{}.f32_tensor(name, {1}, {1})),
                  {"a tensor name", std::to_string(length)}) == "");
  }
}

TEST_CASE("wrong value types are refused by their key") {
  for (const std::uint32_t type : {13u, 255u, 0x7fffffffu, 0xffffffffu}) {
    CHECK(missing(refusal(GgufBytes{}.key("key", type, raw(std::uint64_t{0}))),
                  {"value type of \"key\"", std::to_string(type)}) == "");
    CHECK(missing(refusal(GgufBytes{}.key("key", 9, raw(type, std::uint64_t{1}, std::uint64_t{0}))),
                  {"value type of \"key\"", std::to_string(type)}) == "");
  }
  const std::string nested = raw(9u, std::uint64_t{1}, 4u, std::uint64_t{1}, 7u);
  CHECK(missing(refusal(GgufBytes{}.key("key", 9, nested)), {"\"key\"", "holds arrays"}) == "");
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += raw(9u, std::uint64_t{1});
  CHECK(missing(refusal(GgufBytes{}.key("key", 9, deep)), {"\"key\"", "holds arrays"}) == "");
  CHECK(missing(refusal(GgufBytes{}.key("key", MetaType::boolean, raw(std::uint8_t{2}))),
                {"bool \"key\"", "it is 2"}) == "");
  CHECK(missing(refusal(GgufBytes{}.array("key", MetaType::boolean, 2, std::string("\1\xff"))),
                {"bool \"key\"", "it is 255"}) == "");
}

TEST_CASE("alignments that cannot be meant are refused") {
  for (const std::uint32_t alignment : {0u, 1u, 3u, 4u, 24u, 33u, 1u << 21, 1u << 31, ~0u}) {
    CHECK(
        missing(refusal(GgufBytes{}.u32("general.alignment", alignment).f32_tensor("t", {1}, {1})),
                {"general.alignment", "power of two", "it is " + std::to_string(alignment)}) == "");
  }
  CHECK(missing(refusal(GgufBytes{}.key("general.alignment", MetaType::u64,
                                        raw(std::uint64_t{1} << 40))),
                {"general.alignment must be a u32", "u64"}) == "");
  CHECK(missing(refusal(GgufBytes{}.text("general.alignment", "32")),
                {"must be a u32", "string"}) == "");
  CHECK(missing(refusal(GgufBytes{}.key("general.alignment", MetaType::i32, raw(-32))),
                {"must be a u32", "i32"}) == "");
  CHECK(missing(refusal(GgufBytes{}.array("general.alignment", MetaType::u32, 1, raw(32u))),
                {"must be a u32", "array of u32"}) == "");
}

TEST_CASE("tensors outside the file, unaligned or on top of each other are refused") {
  const std::string data(96, 'x');
  const auto with = [&](std::uint64_t size, std::uint64_t offset) {
    GgufBytes file = GgufBytes{}.tensor_at("t", 24, {size}, offset);
    file.data = data;
    return file;
  };
  CHECK(refusal(with(96, 0)) == "");
  CHECK(refusal(with(1, 64)) == "");
  CHECK(missing(refusal(with(97, 0)), {"\"t\"", "must have 97 bytes", "has 96 bytes"}) == "");
  CHECK(missing(refusal(with(33, 64)), {"\"t\"", "must have 33 bytes at offset 64"}) == "");
  CHECK(missing(refusal(with(1, 96)), {"\"t\"", "offset 96"}) == "");
  for (const std::uint64_t offset : absurd) CHECK(refusal(with(1, offset / 32 * 32)) != "");
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{31}, ~std::uint64_t{0}}) {
    CHECK(missing(refusal(with(1, offset)), {"\"t\"", "multiple of 32", std::to_string(offset)}) ==
          "");
  }
  const auto two = [&](std::uint64_t first, std::uint64_t second) {
    GgufBytes file = GgufBytes{}.tensor_at("a", 24, {33}, first).tensor_at("b", 24, {32}, second);
    file.data = data;
    return file;
  };
  CHECK(refusal(two(0, 64)) == "");
  CHECK(refusal(two(32, 0)) == "");
  CHECK(missing(refusal(two(0, 32)), {"share bytes", "\"a\"", "\"b\""}) == "");
  CHECK(missing(refusal(two(0, 0)), {"share bytes"}) == "");
  CHECK(missing(refusal(two(32, 64)), {"share bytes", "\"a\" reaches into \"b\""}) == "");
}

TEST_CASE("text from a file cannot reach the terminal through a message") {
  const std::string error = refusal(GgufBytes{}.key("evil\x1b[2J\n", 77, ""));
  CHECK(missing(error, {"evil\\x1b[2J\\x0a"}) == "");
  CHECK(error.find('\x1b') == std::string::npos);
  const std::string name(60000, 'n');
  CHECK(refusal(GgufBytes{}.tensor("t" + name, 77, {1}, "")).size() < 400);
}

TEST_CASE("the fuzzer's corpus has the verdicts of its file names") {
  int valid = 0, bad = 0;
  const std::filesystem::path corpus = TENON_SOURCE_DIR "/tests/fuzz/corpus/gguf";
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    const std::string error = refusal(test::read_file(entry.path()));
    if (name.starts_with("valid_")) {
      ++valid;
      CHECK(error == "");
    } else if (name.starts_with("bad_")) {
      ++bad;
      CHECK(error != "");
    }
  }
  CHECK(valid >= 8);
  CHECK(bad >= 27);
}
