// GGUF checkpoints in several files: any of them opens all, and one that does not belong is named.
#include "tenon/io/split_gguf.hpp"

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "tenon/io/checkpoint.hpp"
#include "tenon/io/gguf_writer.hpp"

using namespace tenon;

namespace {

struct Part {
  std::uint32_t no = 0, count = 3;
  std::uint32_t tensors = 3;
};

// A part with one tensor, named after the part, of four bytes equal to its number.
void write_part(const std::filesystem::path& path, const Part& part,
                std::string_view tensor = "t") {
  Metadata metadata;
  if (part.no == 0) metadata.set("general.architecture", "llama");
  metadata.set("split.no", MetaValue{MetaType::u16, {}, std::uint64_t{part.no}});
  metadata.set("split.count", MetaValue{MetaType::u16, {}, std::uint64_t{part.count}});
  metadata.set("split.tensors.count", MetaValue{MetaType::i32, {}, std::int64_t{part.tensors}});
  const std::vector<std::byte> bytes(4, static_cast<std::byte>(part.no));
  const TensorInfo info{message(tensor, part.no), 0, {1}, bytes};
  write_gguf(path, metadata, {&info, 1});
}
std::string name(int no, int count = 3) {
  return message("m-0000", no, "-of-0000", count, ".gguf");
}

}  // namespace

TEST_CASE("any part opens the whole", "[split]") {
  const test::TemporaryFolder at;
  for (std::uint32_t i = 0; i < 3; ++i) write_part(at / name(static_cast<int>(i) + 1), {i});
  for (const int first : {1, 2, 3}) {
    const auto all = open_checkpoint(at / name(first));
    REQUIRE(all->tensors().size() == 3);
    CHECK(all->metadata().text("general.architecture") == "llama");
    CHECK_FALSE(all->metadata().contains("split.count"));
    for (const int i : {0, 1, 2}) {
      const TensorInfo* tensor = all->find(message("t", i));
      REQUIRE(tensor != nullptr);
      CHECK(tensor->data[3] == static_cast<std::byte>(i));
      all->done_with(tensor->data);
      CHECK(tensor->data[3] == static_cast<std::byte>(i));
    }
  }
}

TEST_CASE("missing, doubled and foreign parts are named", "[split]") {
  const test::TemporaryFolder at;
  const auto error = [&](const std::string& file) {
    return test::error_of<LoadError>([&] { open_checkpoint(at / file); });
  };
  for (std::uint32_t i = 0; i < 3; ++i) write_part(at / name(static_cast<int>(i) + 1), {i});
  CHECK(error(name(1)).empty());
  std::filesystem::remove(at / name(2));
  CHECK(test::missing(error(name(1)), {name(2), "there is nothing of that name"}).empty());
  write_part(at / name(2), {0});  // the first part under the second's name
  CHECK(test::missing(error(name(1)), {name(2), "\"split.no\" must be 1", "it is 0"}).empty());
  CHECK(test::missing(error(name(2)), {"-00001-of-00003.gguf"}).empty());
  write_part(at / name(2), {1, 4});
  CHECK(test::missing(error(name(1)), {name(2), "\"split.count\" must be 3", "it is 4"}).empty());
  write_part(at / name(2), {1, 3, 9});
  CHECK(test::missing(error(name(3)), {name(2), "\"split.tensors.count\" must be 3"}).empty());
  for (std::uint32_t i = 0; i < 3; ++i) write_part(at / name(static_cast<int>(i) + 1), {i, 3, 4});
  CHECK(test::missing(error(name(1)), {"must hold 4 tensors", "hold 3"}).empty());
  write_part(at / "other.gguf", {0});
  CHECK(test::missing(error("other.gguf"), {"other.gguf", "-00001-of-00003.gguf"}).empty());
  write_part(at / name(1), {7, 3});
  CHECK(test::missing(error(name(1)), {"split.no and split.count"}).empty());
  write_part(at / "alone.gguf", {0, 1, 1});
  CHECK(error("alone.gguf").empty());
}

TEST_CASE("a merged file is whole; a part that says it were merged is refused", "[split]") {
  const test::TemporaryFolder at;
  for (const std::uint32_t count : {0u, 1u}) {
    INFO(count);
    const auto refusal = [&](const std::string& file, const Part& part) {
      write_part(at / file, part);
      return test::error_of<LoadError>([&] { open_checkpoint(at / file); });
    };
    // As gguf-split --merge leaves it.
    CHECK(refusal("merged.gguf", {0, count, 1}).empty());
    const auto merged = open_checkpoint(at / "merged.gguf");
    CHECK(merged->tensors().size() == 1);
    CHECK(merged->find("t0") != nullptr);
    CHECK(merged->metadata().text("general.architecture") == "llama");
    CHECK_FALSE(merged->metadata().contains("split.count"));
    CHECK_FALSE(merged->metadata().contains("split.tensors.count"));
    CHECK(merged->keep_alive() != nullptr);
    CHECK(refusal("m-00001-of-00001.gguf", {0, count, 1}).empty());
    CHECK(test::missing(refusal("a.gguf", {1, count, 1}),
                        {"a.gguf", "\"split.count\" must be", "split.no (1)"})
              .empty());
    CHECK(test::missing(refusal("a.gguf", {0, count, 3}), {"(3, it holds 1)"}).empty());
    CHECK(test::missing(refusal(name(1), {0, count, 1}), {name(1), "\"split.count\""}).empty());
  }
}

TEST_CASE("parts in another order, of another model and without end are refused", "[split]") {
  const test::TemporaryFolder at;
  const auto error = [&](const std::string& file) {
    return test::error_of<LoadError>([&] { open_checkpoint(at / file); });
  };
  for (std::uint32_t i = 0; i < 3; ++i) write_part(at / name(static_cast<int>(i) + 1), {i});
  // Two files with each other's names; whichever is opened is refused.
  std::filesystem::rename(at / name(2), at / "aside");
  std::filesystem::rename(at / name(3), at / name(2));
  std::filesystem::rename(at / "aside", at / name(3));
  CHECK(test::missing(error(name(1)), {name(2), "\"split.no\" must be 1", "it is 2"}).empty());
  CHECK(test::missing(error(name(2)), {name(2), "part 3 of 3", name(3).substr(1)}).empty());
  CHECK(test::missing(error(name(3)), {name(3), "part 2 of 3", name(2).substr(1)}).empty());
  // The same part of a model with as many parts and tensors, and a name twice.
  write_part(at / name(2), {0}, "u");
  std::filesystem::remove(at / name(3));
  write_part(at / name(3), {2});
  CHECK(test::missing(error(name(1)), {name(2), "\"split.no\" must be 1", "it is 0"}).empty());
  write_part(at / name(2), {1}, "t1\n");
  CHECK(error(name(1)).empty());  // nothing in a part but its numbers says whose it is
  Metadata metadata;
  for (const auto& [key, value] : {std::pair{"split.no", 1}, {"split.count", 3}})
    metadata.set(key, MetaValue{MetaType::u16, {}, static_cast<std::uint64_t>(value)});
  metadata.set("split.tensors.count", MetaValue{MetaType::i32, {}, std::int64_t{3}});
  const std::vector<std::byte> bytes(4);
  const TensorInfo twice{"t0", 0, {1}, bytes};
  write_gguf(at / name(2), metadata, {&twice, 1});
  CHECK(test::missing(error(name(1)), {"t0"}).empty());
  // As many parts as the key can say, of which there is one; more than that; and no number.
  const std::string most = "m-00001-of-65535.gguf";
  write_part(at / most, {0, 65535});
  CHECK(test::missing(error(most), {"m-00002-of-65535.gguf", "nothing of that name"}).empty());
  for (const MetaValue& count : {MetaValue{MetaType::u32, {}, std::uint64_t{65536}},
                                 MetaValue{MetaType::u64, {}, std::uint64_t{1} << 63},
                                 MetaValue{MetaType::i64, {}, std::int64_t{1} << 62}}) {
    Metadata many = metadata;
    many.set("split.count", count);
    write_gguf(at / most, many, {&twice, 1});
    CHECK(error(most) != "");
  }
  Metadata text = metadata;
  text.set("split.count", "three");
  write_gguf(at / most, text, {&twice, 1});
  CHECK(test::missing(error(most), {"split.count"}).empty());
}

TEST_CASE("a thousand parts open, and telling what is done with finds the right one", "[split]") {
  const test::TemporaryFolder at;
  constexpr std::uint32_t count = 1000;
  const auto part = [](std::uint32_t no) {
    const std::string digits = std::to_string(no + 1);
    return "m-" + std::string(5 - digits.size(), '0') + digits + "-of-01000.gguf";
  };
  for (std::uint32_t i = 0; i < count; ++i) write_part(at / part(i), {i, count, count});
  const auto all = open_checkpoint(at / part(500));
  REQUIRE(all->tensors().size() == count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const TensorInfo* tensor = all->find(message("t", i));
    REQUIRE(tensor != nullptr);
    all->done_with(tensor->data);
    CHECK(tensor->data[3] == static_cast<std::byte>(i));
  }
}
