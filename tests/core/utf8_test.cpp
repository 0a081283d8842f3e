#include <tenon/core/utf8.hpp>

#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using namespace tenon;

const std::string bad(replacement_character);

std::string encode(std::uint32_t code) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(b); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 63))};
  if (code < 0x10000)
    return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))};
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
          byte(0x80 | (code & 63))};
}

std::string repair_bytewise(const std::string& bytes) {
  Utf8Repair repair;
  std::string out;
  for (const char c : bytes) repair.push(std::string(1, c), out);
  repair.finish(out);
  return out;
}

}  // namespace

TEST_CASE("every code point is written as it is read, a surrogate in its three bytes") {
  std::string text;
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    text = "x";
    append_utf8(text, code);
    REQUIRE(text == "x" + encode(code));
  }
}

TEST_CASE("every code point is read, surrogates and what lies above U+10FFFF are not") {
  for (std::uint32_t code = 0; code < 0x120000; ++code) {
    const std::string text = encode(code);
    const bool legal = code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
    const Utf8Char front = utf8_front(text + "x");
    if (legal) {
      REQUIRE(front.code == code);
      REQUIRE(front.length == static_cast<int>(text.size()));
      REQUIRE(to_utf8(text) == text);
    } else {
      REQUIRE(front.length == 0);
      REQUIRE(to_utf8(text).find(bad) == 0);
    }
    REQUIRE(is_utf8(text) == legal);
  }
}

TEST_CASE("what is not UTF-8 is replaced once for each maximal subpart") {
  // The fourth row is the example of the Unicode Standard, table 3-11.
  const std::pair<std::string, std::string> rows[] = {
      {"\xE2\x80", bad},
      {"\xE2\x80"
       "A",
       bad + "A"},
      {"\xF0\x9F\xA6\x99\xF0\x9F", "\U0001F999" + bad},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
       "A",
       bad + bad + bad + bad + "A"},
      {"\xED\xA0\x80", bad + bad + bad},
      {"\xC0\xAF", bad + bad},
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},
      {"\xF0\x80\x80\x41", bad + bad + bad + "A"},
      {"\x80", bad},
      {"\xFF\xFE", bad + bad},
      {"", ""},
  };
  for (const auto& [bytes, text] : rows) {
    CHECK(to_utf8(bytes) == text);
    CHECK(repair_bytewise(bytes) == text);
  }
}

TEST_CASE("repairing piece by piece gives the same, and gives UTF-8") {
  const std::vector<unsigned char> classes = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F,
                                              0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1,
                                              0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  std::vector<std::string> texts = {""};
  for (std::size_t from = 0, length = 1; length <= 4; ++length) {
    const std::size_t to = texts.size();
    for (std::size_t i = from; i < to; ++i) {
      for (const unsigned char byte : classes) {
        texts.push_back(texts[i] + static_cast<char>(byte));
        const std::string& text = texts.back();
        const std::string repaired = to_utf8(text);
        REQUIRE(is_utf8(repaired));
        REQUIRE(repair_bytewise(text) == repaired);
        REQUIRE((repaired == text) == is_utf8(text));
        REQUIRE(to_utf8(repaired) == repaired);
      }
    }
    from = to;
  }
}
