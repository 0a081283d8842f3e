// GGUF files that are large: time and memory stay in proportion, offsets pass 4 GiB.
#include <tenon/io/gguf.hpp>

#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "io/gguf_bytes.hpp"
#include "sanitized.hpp"

using namespace tenon;
using test::GgufBytes;
using test::raw;

namespace {

// Processor seconds of a call. Limits are for an optimised build; sanitizers take about ten times
// it.
template <class Call>
double seconds(Call&& call) {
  const std::clock_t start = std::clock();
  call();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}
#if defined(__OPTIMIZE__) && !defined(TENON_SANITIZED)
constexpr double slack = 1;
#else
constexpr double slack = 15;
#endif

// The 64-bit words on which MurmurHash64A, the string hash of libstdc++, works, inverted: the word
// whose scrambled form is `mixed`.
std::uint64_t word_of_mixed(std::uint64_t mixed) {
  constexpr std::uint64_t multiplier = 0xc6a4a7935bd1e995u;
  std::uint64_t inverse = multiplier;
  for (int i = 0; i < 5; ++i) inverse *= 2 - multiplier * inverse;  // Newton, modulo 2^64
  std::uint64_t word = mixed * inverse;
  word ^= word >> 47;
  return word * inverse;
}

// Distinct printable-or-not strings of one hash: flipping the top bit of two neighbouring mixed
// words cancels out. `n` strings take 16 log2(n) bytes each; only those of UTF-8 would pass as
// names, so each word is chosen such that both forms are ASCII.
std::vector<std::string> colliding(std::size_t bits) {
  struct Pair {
    std::string plain, flipped;
  };
  const auto ascii = [](std::uint64_t word) { return (word & 0x8080808080808080u) == 0; };
  std::vector<Pair> words;
  std::uint64_t mixed = 1;
  while (words.size() < 2 * bits) {
    mixed = mixed * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t plain = word_of_mixed(mixed);
    const std::uint64_t flipped = word_of_mixed(mixed ^ (std::uint64_t{1} << 63));
    if (ascii(plain) && ascii(flipped)) words.push_back({raw(plain), raw(flipped)});
  }
  std::vector<std::string> all;
  for (std::size_t choice = 0; choice < std::size_t{1} << bits; ++choice) {
    std::string text;
    for (std::size_t bit = 0; bit < bits; ++bit) {
      const bool flip = (choice >> bit & 1) != 0;
      text += flip ? words[2 * bit].flipped : words[2 * bit].plain;
      text += flip ? words[2 * bit + 1].flipped : words[2 * bit + 1].plain;
    }
    all.push_back(std::move(text));
  }
  return all;
}

}  // namespace

TEST_CASE("a large vocabulary opens in a fraction of a second") {
  std::string tokens, merges;
  for (int i = 0; i < 256 * 1024; ++i) tokens += test::raw_text("token" + std::to_string(i));
  for (int i = 0; i < 500 * 1000; ++i) {
    merges += test::raw_text("left" + std::to_string(i) + " right" + std::to_string(i));
  }
  std::vector<std::byte> bytes =
      GgufBytes{}
          .array("tokenizer.ggml.tokens", MetaType::string, 256 * 1024, tokens)
          .array("tokenizer.ggml.merges", MetaType::string, 500 * 1000, merges)
          .f32s("tokenizer.ggml.scores", std::vector<float>(256 * 1024, 0.5f))
          .bytes();
  const std::size_t file_bytes = bytes.size();
  Metadata metadata;
  std::size_t allocated = 0;
  const double taken = seconds([&] {
    allocated = test::bytes_allocated_by([&] {
      const Gguf gguf = Gguf::from_bytes(std::move(bytes));
      CHECK(gguf.metadata().texts("tokenizer.ggml.merges").back() == "left499999 right499999");
      CHECK(gguf.metadata().texts("tokenizer.ggml.tokens").size() == 256 * 1024);
    });
  });
  CHECK(taken < 0.5 * slack);
  CHECK(allocated < 5 * file_bytes);
}

TEST_CASE("many tensors open in time linear in their number") {
  const auto open = [](int count) {
    GgufBytes file;
    for (int i = 0; i < count; ++i)
      file.tensor_at("blk." + std::to_string(i) + ".weight", 24, {8},
                     32u * static_cast<unsigned>(i));
    file.data.resize(32u * static_cast<unsigned>(count));
    std::vector<std::byte> bytes = file.bytes();
    return seconds([&] {
      const Gguf gguf = Gguf::from_bytes(std::move(bytes));
      REQUIRE(gguf.tensors().size() == static_cast<std::size_t>(count));
      REQUIRE(gguf.find("blk." + std::to_string(count - 1) + ".weight") != nullptr);
    });
  };
  CHECK(open(200000) < 0.5 * slack);
}

TEST_CASE("names made to collide do not slow the reader down") {
  const std::vector<std::string> names = colliding(12);
  REQUIRE(names.size() == 4096);
#if defined(__GLIBCXX__) && defined(__LP64__)
  REQUIRE(std::hash<std::string>{}(names.front()) == std::hash<std::string>{}(names.back()));
#endif
  GgufBytes keys, tensors;
  for (const std::string& name : names) {
    keys.flag(name, true);
    tensors.tensor(name, 24, {1}, "x");
  }
  CHECK(seconds([&] { Gguf::from_bytes(keys.bytes()); }) < 0.5 * slack);
  std::string error;
  CHECK(seconds([&] {
          error = test::error_of<LoadError>([&] { Gguf::from_bytes(tensors.bytes()); });
        }) < 0.5 * slack);
#if defined(__GLIBCXX__) && defined(__LP64__)
  CHECK(test::missing(error, {"distinct hashes"}) == "");
#endif
}

TEST_CASE("a tensor past 4 GiB is found") {
  const test::TemporaryFolder folder;
  const auto path = folder / "sparse.gguf";
  constexpr std::uint64_t offset = std::uint64_t{5} << 30;
  const GgufBytes file = GgufBytes{}.tensor_at("far", 0, {2}, offset).tensor_at("near", 0, {1}, 0);
  std::string start = file.header();
  start.resize((start.size() + 31) / 32 * 32, '\0');
  test::write_file(path, start + raw(1.5f));
  std::error_code error;
  std::filesystem::resize_file(path, start.size() + offset,
                               error);  // a hole, where files may have some
  if (error) {
    WARN("SKIPPED: no sparse file of 5 GiB can be made here: " << error.message());
    return;
  }
  std::ofstream(path, std::ios::binary | std::ios::app) << raw(2.5f, 3.5f);
  REQUIRE(std::filesystem::file_size(path) == start.size() + offset + 8);

  const Gguf gguf = Gguf::open(path);
  const auto first = [&](std::string_view name) {
    float value;
    std::memcpy(&value, gguf.find(name)->data.data(), sizeof value);
    return value;
  };
  CHECK(first("near") == 1.5f);
  CHECK(first("far") == 2.5f);
  CHECK(gguf.find("far")->data.data() - gguf.find("near")->data.data() ==
        static_cast<std::ptrdiff_t>(offset));
  std::filesystem::resize_file(path, start.size() + offset + 7);
  CHECK(test::missing(test::error_of<LoadError>([&] { Gguf::open(path); }),
                      {"sparse.gguf", "\"far\"", "5368709120"}) == "");
}
