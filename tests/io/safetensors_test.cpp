// safetensors: the verdicts of the reference implementation, what is written is read back, and a
// header of any size takes linear time.
#include "tenon/io/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "sanitized.hpp"
#include "shared_data.hpp"

using namespace tenon;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
std::string file(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, '\7');
}
// What is wrong with that file, "" when it is accepted.
std::string verdict(const std::string& header, std::size_t data) {
  return test::error_of<LoadError>([&] { SafeTensors::from_bytes(bytes_of(file(header, data))); });
}
std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   std::size_t begin, std::size_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("ranges must fit shapes", "[safetensors]") {
  for (const SafeType& type : safe_types) {
    const std::string name(type.name);
    const std::size_t right = 6 * type.bytes;
    CHECK(verdict("{" + tensor("a", name, "[2,3]", 0, right) + "}", right).empty());
    for (const std::size_t wrong : {right - type.bytes, right + type.bytes, right + 1, right - 1}) {
      const std::string error = verdict("{" + tensor("a", name, "[2,3]", 0, wrong) + "}", wrong);
      INFO(name << " " << wrong);
      CHECK(test::missing(error, {"\"a\" [2, 3] of type", name, "must have"}).empty());
    }
  }
  CHECK_FALSE(verdict("{" + tensor("a", "F32", "[1000,1000]", 0, 4) + "}", 4).empty());
  const std::string huge = "[4294967296,4294967296,4294967296]";
  CHECK_FALSE(verdict("{" + tensor("a", "F32", huge, 0, 4) + "}", 4).empty());
  CHECK_FALSE(verdict("{" + tensor("a", "F32", "[9223372036854775808]", 0, 4) + "}", 4).empty());
  CHECK_FALSE(verdict("{" + tensor("a", "F32", "[-1]", 0, 4) + "}", 4).empty());
  CHECK_FALSE(verdict("{" + tensor("a", "F32", "[1.0]", 0, 4) + "}", 4).empty());
  CHECK(test::missing(verdict("{" + tensor("a", "F5", "[1]", 0, 4) + "}", 4), {"\"a\"", "\"F5\""})
            .empty());
}

TEST_CASE("tensors cover the data without gaps and overlaps, in any order", "[safetensors]") {
  const auto two = [](std::size_t a0, std::size_t a1, std::size_t b0, std::size_t b1) {
    return "{" + tensor("a", "U8", "[" + std::to_string(a1 - a0) + "]", a0, a1) + "," +
           tensor("b", "U8", "[" + std::to_string(b1 - b0) + "]", b0, b1) + "}";
  };
  CHECK(verdict(two(0, 4, 4, 8), 8).empty());
  CHECK(verdict(two(4, 8, 0, 4), 8).empty());        // keys not in the order of offsets
  CHECK_FALSE(verdict(two(0, 4, 3, 8), 8).empty());  // overlap of one byte
  CHECK_FALSE(verdict(two(0, 4, 5, 8), 8).empty());  // hole of one byte
  CHECK_FALSE(verdict(two(1, 4, 4, 8), 8).empty());  // gap before the first
  CHECK_FALSE(verdict(two(0, 4, 4, 8), 9).empty());  // a byte too many
  CHECK_FALSE(verdict(two(0, 4, 4, 8), 7).empty());  // one too few
  CHECK_FALSE(verdict(two(0, 4, 0, 4), 4).empty());  // the same bytes
  CHECK_FALSE(verdict("{" + tensor("a", "U8", "[0]", 4, 0) + "}", 4).empty());  // backwards
}

TEST_CASE("empty tensors and scalars are legal", "[safetensors]") {
  const std::string header = "{" + tensor("none", "F32", "[0,5]", 4, 4) + "," +
                             tensor("one", "F32", "[]", 0, 4) + "," +
                             tensor("also none", "F16", "[4294967296,4294967296,0]", 0, 0) + "}";
  const SafeTensors read = SafeTensors::from_bytes(bytes_of(file(header, 4)));
  REQUIRE(read.tensors().size() == 3);
  CHECK(read.find("none")->shape == std::vector<Dim>{0, 5});
  CHECK(read.find("none")->data.empty());
  CHECK(read.find("one")->shape.empty());
  CHECK(read.find("one")->data.size() == 4);
  CHECK(read.find("two") == nullptr);
  std::ostringstream out;
  write_safetensors(out, read.tensors(), {{"format", "pt"}});
  const SafeTensors again = SafeTensors::from_bytes(bytes_of(out.str()));
  CHECK(again.metadata() == SafeMetadata{{"format", "pt"}});
  CHECK(again.find("also none")->shape == read.find("also none")->shape);
  CHECK(again.find("one")->data[0] == std::byte{7});
}

TEST_CASE("headers: length, start, keys, metadata, JSON", "[safetensors]") {
  const auto whole = [](const std::string& bytes) {
    return test::error_of<LoadError>([&] { SafeTensors::from_bytes(bytes_of(bytes)); });
  };
  CHECK(test::missing(whole("1234567"), {"8 bytes", "it has 7"}).empty());
  const std::uint64_t lengths[] = {100'000'001, 3, ~std::uint64_t{0}};
  for (const std::uint64_t length : lengths) {
    CHECK_FALSE(whole(std::string(reinterpret_cast<const char*>(&length), 8) + "{}").empty());
  }
  CHECK(verdict("{}", 0).empty());
  CHECK(verdict("{}      ", 0).empty());  // padded, as files are
  CHECK_FALSE(verdict("", 0).empty());
  CHECK_FALSE(verdict(" {}", 0).empty());
  CHECK_FALSE(verdict("{} x", 0).empty());
  CHECK_FALSE(verdict("{}", 1).empty());
  CHECK_FALSE(verdict("[]", 0).empty());
  const std::string a = tensor("a", "U8", "[1]", 0, 1);
  CHECK(verdict("{\"__metadata__\":{\"k\":\"v\"}," + a + "}", 1).empty());
  CHECK(verdict("{\"__metadata__\":null," + a + "}", 1).empty());
  CHECK_FALSE(verdict("{\"__metadata__\":{\"k\":1}," + a + "}", 1).empty());
  CHECK_FALSE(verdict("{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}," + a + "}", 1).empty());
  CHECK_FALSE(verdict("{\"__metadata__\":{},\"__metadata__\":{}," + a + "}", 1).empty());
  CHECK(test::missing(verdict("{" + a + "," + tensor("a", "U8", "[0]", 1, 1) + "}", 1),
                      {"\"a\" stands there twice"})
            .empty());
  CHECK_FALSE(verdict("{" + a + ",}", 1).empty());
  CHECK_FALSE(verdict("{" + a, 1).empty());
  for (const std::string fields :
       {R"("dtype":"U8","shape":[1])", R"("dtype":"U8","data_offsets":[0,1])",
        R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[01],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])",
        R"("dtype":"U8","shape":[1,],"data_offsets":[0,1])",
        R"("dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551617])"}) {
    INFO(fields);
    CHECK_FALSE(verdict("{\"a\":{" + fields + "}}", 1).empty());
  }
  // Fields that the reference does not know pass, whatever they hold.
  const std::string known = R"("dtype":"U8","shape":[1],"data_offsets":[0,1])";
  CHECK(verdict("{\"a\":{\"x\":[{\"y\":[-1.5e+3,true,null,{}]},\"z\"]," + known + "}}", 1).empty());
  CHECK_FALSE(verdict("{\"a\":{\"x\":[}," + known + "}}", 1).empty());
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  CHECK_FALSE(verdict("{\"a\":{\"x\":" + deep + "," + known + "}}", 1).empty());
  CHECK_FALSE(verdict(std::string("{\"\xff\":{") + known + "}}", 1).empty());
  CHECK_FALSE(verdict(std::string("{\"\x01\":{") + known + "}}", 1).empty());
}

TEST_CASE("escapes in names", "[safetensors]") {
  const std::string fields = R"(:{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const auto name = [&](const std::string& text) {
    return SafeTensors::from_bytes(bytes_of(file("{\"" + text + "\"" + fields, 1)))
        .tensors()[0]
        .name;
  };
  CHECK(name(R"(a\"\\\/\b\f\n\r\tz)") == "a\"\\/\b\f\n\r\tz");
  CHECK(name(R"(\u0041\u00e9\u20AC\ud83e\udd99)") == "A\u00e9\u20ac\U0001f999");
  for (const std::string bad :
       {R"(\x)", R"(\u12)", R"(\ud83e)", R"(\ud83ex)", R"(\udd99)", R"(\ud83e\u0041)"}) {
    INFO(bad);
    CHECK_THROWS_AS(name(bad), LoadError);
  }
  const std::string odd = "\x01\"\\\n\u20ac";
  const std::byte one{9};
  const SafeTensor tensor{odd, find_safe_type("U8"), {1}, std::span(&one, 1)};
  std::ostringstream out;
  write_safetensors(out, {&tensor, 1});
  CHECK(SafeTensors::from_bytes(bytes_of(out.str())).tensors()[0].name == odd);
}

TEST_CASE("what is not sound is not written", "[safetensors]") {
  const std::vector<std::byte> four(4);
  const SafeType* f32 = find_safe_type("F32");
  const auto write = [](std::vector<SafeTensor> tensors) {
    std::ostringstream out;
    write_safetensors(out, tensors);
  };
  CHECK_THROWS_AS(write({{"a", f32, {2}, four}}), ShapeError);
  CHECK_THROWS_AS(write({{"a", nullptr, {1}, four}}), ShapeError);
  CHECK_THROWS_AS(write({{"a", f32, {-1, -1}, four}}), ShapeError);
  CHECK_THROWS_AS(write({{"a", f32, {1}, four}, {"a", f32, {1}, four}}), RequestError);
  CHECK_THROWS_AS(write({{"__metadata__", f32, {1}, four}}), RequestError);
  CHECK_THROWS_AS(write({{"\xff", f32, {1}, four}}), RequestError);
}

TEST_CASE("the order of the reference: wide types, then names; the file is replaced whole",
          "[safetensors]") {
  const std::vector<std::byte> eight(8);
  const SafeTensor tensors[] = {{"b", find_safe_type("F16"), {4}, eight},
                                {"c", find_safe_type("F32"), {2}, eight},
                                {"a", find_safe_type("F16"), {4}, eight}};
  const test::TemporaryFolder folder;
  write_safetensors(folder / "x.safetensors", tensors);
  const SafeTensors read = SafeTensors::open(folder / "x.safetensors");
  REQUIRE(read.tensors().size() == 3);
  CHECK(read.tensors()[0].name == "c");
  CHECK(read.tensors()[1].name == "a");
  CHECK(read.tensors()[2].name == "b");
  CHECK(reinterpret_cast<std::uintptr_t>(read.tensors()[0].data.data()) % 8 == 0);
  CHECK(folder.entries() == 1);
}

TEST_CASE("reference files", "[safetensors]") {
  const auto path = shared_file("models/stories260K/model.safetensors");
  if (path.empty()) return;
  const SafeTensors read = SafeTensors::open(path);
  const SafeTensor* embedding = read.find("model.embed_tokens.weight");
  REQUIRE(embedding != nullptr);
  CHECK(embedding->shape == std::vector<Dim>{512, 64});
  CHECK(embedding->type->name == "F32");
}

TEST_CASE("a header of 60 MB: at least 100 MB/s, in linear time", "[safetensors]") {
  const auto made = [](std::size_t count) {
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
    for (std::size_t i = 0; i < count; ++i) {
      header += "," + tensor("model.layers." + std::to_string(i) + ".mlp.experts.gate_proj.weight",
                             "BF16", "[4,2]", i * 16, i * 16 + 16);
    }
    return file(header + "}", count * 16);
  };
  const auto seconds = [&](std::size_t count, std::size_t& size) {
    auto bytes = bytes_of(made(count));
    size = bytes.size() - count * 16;
    const std::clock_t start = std::clock();
    const SafeTensors read = SafeTensors::from_bytes(std::move(bytes));
    const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    CHECK(read.tensors().size() == count);
    return taken;
  };
  std::size_t small = 0, large = 0;
  // Other programs share the machine's caches: the best of three runs is the reader's own time.
  const auto best = [&](std::size_t count, std::size_t& size) {
    return (std::min)({seconds(count, size), seconds(count, size), seconds(count, size)});
  };
  const double half = best(250'000, small), whole = best(500'000, large);
  const double rate = static_cast<double>(large) / 1e6 / whole;
  WARN("safetensors header: " << large << " bytes in " << whole << " s, " << rate << " MB/s");
  CHECK(whole < 4 * half);
#if defined(__OPTIMIZE__) && !defined(TENON_SANITIZED)
  CHECK(rate > 100);
#endif
}
