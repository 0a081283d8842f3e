#include <tenon/core/json_escapes.hpp>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tenon/core/physical_memory.hpp>
#include <tenon/core/utf8.hpp>

#include "catch.hpp"

namespace {

using namespace tenon;

// What nlohmann's parser makes of the escape; "refused" when it takes none.
std::string as_elsewhere(std::string_view escape) {
  const auto text = nlohmann::json::parse("\"\\" + std::string(escape) + "\"", nullptr,
                                          /*allow_exceptions=*/false);
  return text.is_string() ? text.get<std::string>() : "refused";
}

std::string as_here(std::string_view escape) {
  const JsonEscape found = json_escape(escape);
  if (!found.expected.empty() || found.size != escape.size()) return "refused";
  std::string out;
  append_utf8(out, found.code);
  return out;
}

}  // namespace

TEST_CASE("an escape of JSON stands for what another reader takes it for") {
  std::string escape(1, '\0');
  for (int letter = 0; letter < 128; ++letter) {
    if (letter == '"') continue;  // would end the other reader's string
    escape[0] = static_cast<char>(letter);
    INFO(letter);
    CHECK(as_here(escape) == as_elsewhere(escape));
  }
  CHECK(as_here("\"") == "\"");
  for (const std::string_view text : {"u0041",
                                      "u00e9",
                                      "u00E9",
                                      "u20ac",
                                      "uD83D\\uDE42",
                                      "ud83d\\ude42",
                                      "uDBFF\\uDFFF",
                                      "uD800\\uDC00",
                                      "uFFFF",
                                      "u0000",
                                      "u",
                                      "u12",
                                      "u123g",
                                      "u12 4",
                                      "uD83D",
                                      "uDE42",
                                      "uD83D\\u0041",
                                      "uD83D\\uD83D",
                                      "uD83Dx",
                                      "uD83D\\n",
                                      "uD83D\\uDE4",
                                      "U0041",
                                      "x41"}) {
    INFO(text);
    CHECK(as_here(text) == as_elsewhere(text));
  }
  // Where a fault is, and what had to be there.
  CHECK(json_escape("").expected == "an escape of JSON");
  CHECK(json_escape("u12g4").size == 3);
  CHECK(json_escape("u12g4").expected == "four hexadecimal digits");
  CHECK(json_escape("uD83Dx").size == 5);
  CHECK(json_escape("uD83Dx").expected == "both halves of a character");
  CHECK(json_escape("nothing").size == 1);
}

TEST_CASE("escaped text is what another writer makes of it, and reads back") {
  std::string all;
  for (std::uint32_t code = 0; code < 0x300; ++code) append_utf8(all, code);
  for (const std::uint32_t code : {0xFFFDu, 0xFFFFu, 0x10000u, 0x1F642u, 0x10FFFFu})
    append_utf8(all, code);
  for (const bool ascii : {false, true}) {
    const std::string here = '"' + json_escaped(all, ascii) + '"';
    CHECK(nlohmann::json::parse(here).get<std::string>() == all);
    if (!ascii) CHECK(here == nlohmann::json(all).dump());
  }
  CHECK(json_escaped("\"\\/\b\f\n\r\t\x01\x7F") == "\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7F");
  CHECK(json_escaped("\x7F\u00E9\U0001F642", true) == "\\u007f\\u00e9\\ud83d\\ude42");
  CHECK(json_escaped("a\xFFz", true) == "a\xFFz");  // no character, so nothing to name
}

TEST_CASE("the machine's memory is what the system says it is") {
  std::string word;
  std::size_t kib = 0;
  std::ifstream file("/proc/meminfo");
  if (!(file >> word >> kib) || word != "MemTotal:") {
    WARN("SKIPPED: there is no /proc/meminfo here");
    return;
  }
  CHECK(physical_memory() / 1024 == kib);
}
