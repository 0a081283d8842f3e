// What well-formed GGUF files give: the values of real ones, and every legal form of small ones.
#include <tenon/io/gguf.hpp>
#include <tenon/quant/dense.hpp>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "io/gguf_bytes.hpp"
#include "shared_data.hpp"

using namespace tenon;
using test::GgufBytes;

namespace {
float value_at(const TensorInfo& tensor, std::size_t i) {
  float value;
  F32::decode(tensor.data.data() + 4 * i, 1, &value);
  return value;
}
using Shape = std::vector<Dim>;
}  // namespace

TEST_CASE("stories260K has the metadata and weights it was made with") {
  const auto path = shared_file("models/stories260K.gguf");
  if (path.empty()) return;
  const Gguf gguf = Gguf::open(path, GENERATE(FileAccess::map, FileAccess::read));
  CHECK(gguf.origin() == path.string());
  CHECK(gguf.version() == 3);
  CHECK(gguf.alignment() == 32);

  const Metadata& metadata = gguf.metadata();
  CHECK(metadata.entries().size() == 25);
  CHECK(metadata.entries().front().key == "general.architecture");
  CHECK(metadata.entries().back().key == "tokenizer.ggml.add_space_prefix");
  CHECK(metadata.text("general.architecture") == "llama");
  CHECK(metadata.text("general.license") == "mit");
  CHECK(metadata.integer("llama.context_length") == 512);
  CHECK(metadata.integer("llama.feed_forward_length") == 172);
  CHECK(metadata.number("llama.attention.layer_norm_rms_epsilon") == static_cast<double>(1e-5f));
  CHECK(metadata.number("llama.rope.freq_base") == 10000.0);
  CHECK(metadata.flag("tokenizer.ggml.add_bos_token"));
  CHECK_FALSE(metadata.flag("tokenizer.ggml.add_eos_token"));
  const auto& tokens = metadata.texts("tokenizer.ggml.tokens");
  REQUIRE(tokens.size() == 512);
  CHECK(tokens[0] == "<unk>");
  CHECK(tokens[3] == "<0x00>");
  CHECK(tokens[511] == "\xe2\x80\x8a");
  CHECK(metadata.floats("tokenizer.ggml.scores").back() == -252.0);
  CHECK(metadata.integers("tokenizer.ggml.token_type")[3] == 6);
  CHECK(metadata.find("tokenizer.ggml.token_type")->item == MetaType::i32);

  REQUIRE(gguf.tensors().size() == 47);
  CHECK(gguf.tensors()[0].name == "token_embd.weight");
  const TensorInfo* embedding = gguf.find("token_embd.weight");
  REQUIRE(embedding == &gguf.tensors()[0]);
  CHECK(embedding->shape == Shape{512, 64});
  CHECK(embedding->ggml_type == F32::ggml_type);
  CHECK(embedding->data.size() == 512 * 64 * 4);
  CHECK(value_at(*embedding, 0) == -0.29474878311157227f);
  CHECK(value_at(*embedding, 512 * 64 - 1) == -0.424032598733902f);
  const TensorInfo* down = gguf.find("blk.4.ffn_down.weight");
  REQUIRE(down != nullptr);
  CHECK(down->shape == Shape{64, 172});
  CHECK(value_at(*down, 0) == -0.04791264981031418f);
  CHECK(value_at(*down, 172 * 64 - 1) == -0.0035068716388195753f);
  CHECK(gguf.find("output_norm.weight")->shape == Shape{64});
  CHECK(gguf.find("output.weight") == nullptr);
  gguf.done_with(down->data);  // memory, not the right to read it again
  CHECK(value_at(*down, 0) == -0.04791264981031418f);
  CHECK(gguf.find("token_embd.weigh") == nullptr);
}

TEST_CASE("quantized tensors have the bytes of their blocks") {
  const auto path = shared_file("models/quant/llama-256-mixed.gguf");
  if (path.empty()) return;
  const Gguf gguf = Gguf::open(path);
  // Type and bytes from the offsets that the file's writer left.
  const std::map<std::string, std::pair<int, std::size_t>> expected{
      {"token_embd.weight", {14, 512 * 210}},
      {"blk.0.attn_k.weight", {11, 128 * 110}},
      {"blk.0.attn_output.weight", {13, 256 * 176}},
      {"blk.0.attn_q.weight", {10, 256 * 84}},
      {"blk.0.attn_v.weight", {12, 128 * 144}},
      {"blk.0.ffn_down.weight", {7, 256 * 8 * 24}},
      {"blk.0.ffn_gate.weight", {23, 256 * 136}},
      {"blk.0.ffn_up.weight", {20, 256 * 8 * 18}},
      {"blk.1.attn_k.weight", {3, 128 * 8 * 20}},
      {"blk.1.attn_output.weight", {8, 256 * 8 * 34}},
      {"blk.1.attn_q.weight", {6, 256 * 8 * 22}},
      {"blk.1.attn_v.weight", {2, 128 * 8 * 18}},
      {"blk.1.ffn_down.weight", {1, 256 * 256 * 2}},
      {"blk.1.ffn_gate.weight", {21, 256 * 110}},
      {"blk.1.ffn_up.weight", {30, 256 * 256 * 2}}};
  for (const auto& [name, type_and_bytes] : expected) {
    INFO(name);
    const TensorInfo* tensor = gguf.find(name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->ggml_type == type_and_bytes.first);
    CHECK(tensor->data.size() == type_and_bytes.second);
  }
}

TEST_CASE("every model and vocabulary at hand opens") {
  const auto root = shared_file("models");
  const auto vocabularies = shared_file("data/tokenizers");
  if (root.empty() || vocabularies.empty()) return;
  int files = 0;
  for (const auto& folder : {root, vocabularies}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".gguf") continue;
      INFO(entry.path().string());
      CHECK_NOTHROW(Gguf::open(entry.path()));
      ++files;
    }
  }
  CHECK(files == 37);
}

TEST_CASE("a vocabulary file has metadata and no tensors") {
  const auto path = shared_file("data/tokenizers/ggml-vocab-deepseek-coder.gguf");
  if (path.empty()) return;
  const Gguf gguf = Gguf::open(path);
  CHECK(gguf.tensors().empty());
  CHECK(gguf.find("token_embd.weight") == nullptr);
  CHECK(gguf.metadata().entries().size() == 25);
  CHECK(gguf.metadata().texts("tokenizer.ggml.tokens").size() == 32256);
}

TEST_CASE("every value type is read as stored") {
  const Gguf gguf = Gguf::from_bytes(
      GgufBytes{}
          .key("u8", MetaType::u8, test::raw(std::uint8_t{255}))
          .key("i8", MetaType::i8, test::raw(std::int8_t{-128}))
          .key("u16", MetaType::u16, test::raw(std::uint16_t{65535}))
          .key("i16", MetaType::i16, test::raw(std::int16_t{-32768}))
          .u32("u32", 4294967295u)
          .key("i32", MetaType::i32, test::raw(std::int32_t{-2147483647 - 1}))
          .key("u64", MetaType::u64, test::raw(std::uint64_t{18446744073709551615u}))
          .key("i64", MetaType::i64, test::raw(std::int64_t{-9223372036854775807 - 1}))
          .f32("f32", 0.1f)
          .key("f64", MetaType::f64, test::raw(0.1))
          .flag("yes", true)
          .flag("no", false)
          .text("text", std::string_view("a\0\xff", 3))  // a value may be any bytes
          .bytes());
  const Metadata& m = gguf.metadata();
  CHECK(m.integer("u8") == 255);
  CHECK(m.integer("i8") == -128);
  CHECK(m.integer("u16") == 65535);
  CHECK(m.integer("i16") == -32768);
  CHECK(m.integer("u32") == 4294967295);
  CHECK(m.integer("i32") == -2147483648);
  CHECK(std::get<std::uint64_t>(m.find("u64")->data) == 18446744073709551615u);
  CHECK(m.integer("i64") == INT64_MIN);
  CHECK(m.number("f32") == static_cast<double>(0.1f));
  CHECK(m.number("f64") == 0.1);
  CHECK(m.flag("yes"));
  CHECK_FALSE(m.flag("no"));
  CHECK(m.text("text") == std::string("a\0\xff", 3));
  for (const Metadata::Entry& entry : m.entries()) {
    if (entry.key != "yes" && entry.key != "no" && entry.key != "text") {
      CHECK(name_of(entry.value.type) == entry.key);
    }
  }
}

TEST_CASE("arrays of every item type are read as stored") {
  using U = std::vector<std::uint64_t>;
  using I = std::vector<std::int64_t>;
  const Gguf gguf = Gguf::from_bytes(
      GgufBytes{}
          .array("u8", MetaType::u8, 2, test::raw(std::uint8_t{1}, std::uint8_t{255}))
          .array("i8", MetaType::i8, 2, test::raw(std::int8_t{1}, std::int8_t{-1}))
          .array("u16", MetaType::u16, 1, test::raw(std::uint16_t{65535}))
          .array("i16", MetaType::i16, 1, test::raw(std::int16_t{-2}))
          .array("u32", MetaType::u32, 1, test::raw(4000000000u))
          .i32s("i32", {3, -3})
          .array("u64", MetaType::u64, 1, test::raw(std::uint64_t{1} << 63))
          .array("i64", MetaType::i64, 1, test::raw(std::int64_t{-5}))
          .f32s("f32", {0.5f, -0.1f})
          .array("f64", MetaType::f64, 1, test::raw(0.1))
          .array("bool", MetaType::boolean, 3, std::string("\1\0\1", 3))
          .texts("string", {"", "one", "two words"})
          .array("none", MetaType::string, 0, "")
          .bytes());
  const Metadata& m = gguf.metadata();
  CHECK(std::get<U>(m.find("u8")->data) == U{1, 255});
  CHECK(std::get<I>(m.find("i8")->data) == I{1, -1});
  CHECK(std::get<U>(m.find("u16")->data) == U{65535});
  CHECK(std::get<I>(m.find("i16")->data) == I{-2});
  CHECK(m.integers("u32") == I{4000000000});
  CHECK(m.integers("i32") == I{3, -3});
  CHECK(std::get<U>(m.find("u64")->data) == U{std::uint64_t{1} << 63});
  CHECK(m.integers("i64") == I{-5});
  CHECK(m.floats("f32") == std::vector<double>{0.5, static_cast<double>(-0.1f)});
  CHECK(m.floats("f64") == std::vector<double>{0.1});
  CHECK(std::get<std::vector<bool>>(m.find("bool")->data) == std::vector<bool>{true, false, true});
  CHECK(m.texts("string") == std::vector<std::string>{"", "one", "two words"});
  CHECK(m.texts("none").empty());
  CHECK(m.find("bool")->type_name() == "array of bool");
}

TEST_CASE("tokenizer arrays of any wrong type are refused by their key") {
  // An array is read as the type it is stored under, with that type's bytes; whether that is what
  // it must be is checked when it is asked for.
  struct Stored {
    MetaType type;
    std::size_t bytes;
  };
  const Stored all[] = {{MetaType::u8, 1},  {MetaType::i8, 1},      {MetaType::u16, 2},
                        {MetaType::i16, 2}, {MetaType::u32, 4},     {MetaType::i32, 4},
                        {MetaType::f32, 4}, {MetaType::boolean, 1}, {MetaType::u64, 8},
                        {MetaType::i64, 8}, {MetaType::f64, 8},     {MetaType::string, 8}};
  const std::string key = GENERATE("tokenizer.ggml.tokens", "tokenizer.ggml.scores",
                                   "tokenizer.ggml.token_type", "tokenizer.ggml.merges");
  for (const auto [type, bytes] : all) {
    INFO(key << " as " << name_of(type));
    const Gguf gguf =
        Gguf::from_bytes(GgufBytes{}.array(key, type, 3, std::string(3 * bytes, '\0')).bytes());
    const Metadata& m = gguf.metadata();
    const std::string found = "array of " + std::string(name_of(type));
    const auto check = [&](bool fits, const std::string& error) {
      CHECK((fits ? error : test::missing(error, {key, found})) == "");
    };
    check(type == MetaType::string, test::error_of<LoadError>([&] { m.texts(key); }));
    check(is_float(type), test::error_of<LoadError>([&] { m.floats(key); }));
    check(is_signed(type) || is_unsigned(type),
          test::error_of<LoadError>([&] { m.integers(key); }));
  }
}

TEST_CASE("tensors may come with gaps, in any order, under any alignment") {
  for (const std::uint64_t alignment : {8u, 16u, 64u, 4096u, 1u << 20}) {
    INFO(alignment);
    GgufBytes file;
    file.alignment = alignment;
    file.tensor_at("second", 0, {1}, 2 * alignment).tensor_at("first", 0, {2, 1}, 0);
    file.data = test::raw(1.0f, 2.0f);
    file.data.resize(2 * alignment);
    file.data += test::raw(3.0f);  // and no padding after the last
    const Gguf gguf = Gguf::from_bytes(file.bytes());
    CHECK(gguf.alignment() == alignment);
    REQUIRE(gguf.tensors().size() == 2);
    CHECK(gguf.tensors()[0].name == "second");
    CHECK(value_at(*gguf.find("second"), 0) == 3.0f);
    CHECK(gguf.find("first")->shape == Shape{1, 2});
    CHECK(value_at(*gguf.find("first"), 1) == 2.0f);
  }
}

TEST_CASE("sizes are reversed to slowest first, for every rank") {
  const std::vector<float> values(24, 1.0f);
  const Gguf gguf = Gguf::from_bytes(GgufBytes{}
                                         .f32_tensor("one", {24}, values)
                                         .f32_tensor("two", {8, 3}, values)
                                         .f32_tensor("three", {4, 3, 2}, values)
                                         .f32_tensor("four", {4, 3, 1, 2}, values)
                                         .bytes());
  CHECK(gguf.find("one")->shape == Shape{24});
  CHECK(gguf.find("two")->shape == Shape{3, 8});
  CHECK(gguf.find("three")->shape == Shape{2, 3, 4});
  CHECK(gguf.find("four")->shape == Shape{2, 1, 3, 4});
}

TEST_CASE("version 2 reads like version 3") {
  GgufBytes file;
  file.version = 2;
  const Gguf gguf = Gguf::from_bytes(file.u32("key", 7).f32_tensor("t", {1}, {2.5f}).bytes());
  CHECK(gguf.version() == 2);
  CHECK(gguf.metadata().integer("key") == 7);
  CHECK(value_at(*gguf.find("t"), 0) == 2.5f);
}

TEST_CASE("names are kept whole, however long and however alike") {
  const std::string same(63, 'n');
  const std::vector<std::string> names{same + "a",
                                       same + "b",
                                       std::string(64, 'x'),
                                       std::string(65, 'x'),
                                       std::string(300, 'x'),
                                       std::string(65535, 'x'),
                                       ".weight",
                                       std::string("nul\0a", 5),
                                       std::string("nul\0b", 5),
                                       "\xc3\xa9"};
  GgufBytes file;
  for (std::size_t i = 0; i < names.size(); ++i)
    file.f32_tensor(names[i], {1}, {static_cast<float>(i)});
  const Gguf gguf = Gguf::from_bytes(file.bytes());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorInfo* tensor = gguf.find(names[i]);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->name == names[i]);
    CHECK(value_at(*tensor, 0) == static_cast<float>(i));
  }
}

TEST_CASE("a file moves with its tensors") {
  const test::TemporaryFolder folder;
  const GgufBytes file = GgufBytes{}.u32("key", 7).f32_tensor("t", {2}, {1.0f, 2.0f});
  test::write_file(folder / "file.gguf", file.file());
  std::vector<Gguf> all;
  all.push_back(Gguf::from_bytes(file.bytes()));
  all.push_back(Gguf::open(folder / "file.gguf"));
  all.push_back(Gguf::open(folder / "file.gguf", FileAccess::read));
  for (Gguf& first : all) {
    const std::byte* data = first.tensors()[0].data.data();
    Gguf second(std::move(first));
    Gguf third = Gguf::from_bytes(GgufBytes{}.f32_tensor("other", {1}, {0.0f}).bytes());
    third = std::move(second);
    REQUIRE(third.find("t") == &third.tensors()[0]);
    CHECK(third.tensors()[0].data.data() == data);
    CHECK(value_at(*third.find("t"), 1) == 2.0f);
    CHECK(third.metadata().integer("key") == 7);
    CHECK(third.find("other") == nullptr);
    CHECK(first.tensors().empty());  // NOLINT: what a moved-from file is, is the question
    CHECK(first.find("t") == nullptr);
  }
}
