// JSON as a tree: what RFC 8259 allows, and nothing else.
#include "tenon/core/json_value.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "io/errors.hpp"
#include "tenon/core/error.hpp"

using namespace tenon;

TEST_CASE("values: of each kind, and written again", "[json]") {
  const std::string text =
      R"({"b":[1,-2.50,1e-05,true,false,null,{}],"a":"x\"\\\n\u0001é","c":[],"":{"d":18446744073709551615}})";
  const JsonValue value = JsonValue::parse(" " + text + "\r\n\t ", "file");
  REQUIRE(value.object() != nullptr);
  CHECK(value.type_name() == "object");
  const JsonValue::List& list = *value.find("b")->list();
  REQUIRE(list.size() == 7);
  CHECK(list[0].number() == 1);
  CHECK(list[1].number() == -2.5);
  CHECK(list[2].number() == 1e-5);
  CHECK(*list[3].flag());
  CHECK(!*list[4].flag());
  CHECK(list[5].is_null());
  CHECK(list[6] == JsonValue::Object());
  CHECK(*value.find("a")->text() == "x\"\\\n\x01é");
  CHECK(value.find("z") == nullptr);
  CHECK(list[0].find("z") == nullptr);
  CHECK(
      value.dump() ==
      R"({"":{"d":18446744073709551615},"a":"x\"\\\n\u0001é","b":[1,-2.50,1e-05,true,false,null,{}],"c":[]})");
  CHECK(JsonValue::parse(value.dump(2), "again") == value);
  CHECK(JsonValue::parse(R"({"a":[1,{"b":2}],"c":[]})", "file").dump(2) ==
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": []\n}");
  CHECK(JsonValue::parse(R"({"a":1,"a":2})", "file").find("a")->number() == 2);
  CHECK(*JsonValue::parse(R"("\ud83d\ude00\/")", "file").text() == "\U0001F600/");
}

TEST_CASE("numbers: compared as doubles, made with all digits", "[json]") {
  CHECK(JsonValue(1) == JsonValue(1.0));
  CHECK(JsonValue(1) != JsonValue(true));
  CHECK(JsonValue(1) != JsonValue("1"));
  CHECK(JsonValue(10000.0).dump() == "10000.0");
  CHECK(JsonValue(0.1).dump() == "0.1");
  CHECK(JsonValue(0.1f).number() == static_cast<double>(0.1f));
  CHECK(JsonValue(std::numeric_limits<std::uint64_t>::max()).dump() == "18446744073709551615");
  CHECK(JsonValue(std::numeric_limits<double>::infinity()).is_null());
  CHECK(JsonValue::parse("1e999", "file").number() == std::numeric_limits<double>::infinity());
  CHECK(JsonValue::parse("1e-999", "file").number() == 0);
  CHECK(JsonValue("1").number() != JsonValue("1").number());  // NaN
  CHECK(JsonValue::parse("-9223372036854775808", "file").integer() ==
        std::numeric_limits<std::int64_t>::min());
  for (const char* other : {"9223372036854775808", "1.0", "1e3", "\"1\"", "null"}) {
    INFO(other);
    CHECK(!JsonValue::parse(other, "file").integer());
  }
}

TEST_CASE("objects are built by their keys", "[json]") {
  JsonValue value;
  value["b"] = 1;
  value["a"]["c"] = JsonValue::List{"x", 2.5, false};
  CHECK(value.dump() == R"({"a":{"c":["x",2.5,false]},"b":1})");
  value["b"] = "twice";
  value.object()->erase("a");
  CHECK(value.dump() == R"({"b":"twice"})");
}

TEST_CASE("what is no JSON is refused with the byte", "[json]") {
  const auto error = [](std::string_view text) {
    return test::error_of<LoadError>([&] { JsonValue::parse(text, "the file"); });
  };
  for (const char* text :
       {"",    " ",       "{",           "[",        "[1,]", "{\"a\":1,}", "{,}",
        "[,]", "{\"a\"}", "{a:1}",       "[1 2]",    "1 2",  "01",         "-",
        "1.",  ".5",      "1e",          "+1",       "nul",  "True",       "NaN",
        "\"a", "\"\\x\"", "\"\\ud800\"", "\"a\nb\"", "'a'",  "[1}",        "\xEF\xBB\xBF{}"}) {
    INFO(text);
    CHECK(test::missing(error(text), {"the file", "JSON must hold", "byte"}).empty());
  }
  CHECK(test::missing(error("[1, 2, x]"), {"byte 7", "\"x]\""}).empty());
  CHECK(test::missing(error("\"\xff\""), {"the file", "UTF-8"}).empty());
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(JsonValue::parse(nested(128), "file").list() != nullptr);
  CHECK(test::missing(error(nested(129)), {"128 deep"}).empty());
  CHECK(test::missing(error(std::string(1000000, '[')), {"128 deep"}).empty());
}
