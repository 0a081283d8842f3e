// decode(encode(text)) == text, whatever the bytes; and what decoding says to ids that do not
// exist.
#include <tenon/text/text_stream.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;
using Kind = TokenKind;

const std::string mark = "\u2581";

// A vocabulary with pieces of every kind, some of them strange.
std::vector<Piece> strange_pieces() {
  return marks_and_bytes() + std::vector<Piece>{{mark, -1},
                                                {"a", -2},
                                                {mark + "a", -3},
                                                {mark + mark, -4},
                                                {"\u00E9", -5},
                                                {"a\u00E9", -6},
                                                {"", -7},
                                                {std::string("a\0b", 3), -8},
                                                {std::string(1, '\0'), -9},
                                                {"\xE2\x96", -10},
                                                {"\x81", -11},
                                                {"\xFF\xFE", -12},
                                                {"a" + mark + "a", -13},
                                                {"<|u|>", 0, Kind::user_defined},
                                                {mark + mark + mark, 0, Kind::user_defined},
                                                {"\n\n", 0, Kind::user_defined},
                                                {"\xF0\x9F", 0, Kind::user_defined},
                                                {"[c]", 0, Kind::control},
                                                {"un", -1, Kind::unused}};
}

std::string random_utf8(std::mt19937& random, std::size_t characters) {
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    const std::uint32_t highest[] = {0x80, 0x800, 0x10000, 0x110000};
    auto code = static_cast<std::uint32_t>(random() % highest[random() % 4]);
    if (code >= 0xD800 && code <= 0xDFFF)
      code = 0x2581;  // the one character with a meaning of its own
    if (random() % 4 == 0) code = ' ';
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xC0 | code >> 6);
    } else if (code < 0x10000) {
      text += static_cast<char>(0xE0 | code >> 12);
    } else {
      text += static_cast<char>(0xF0 | code >> 18);
      text += static_cast<char>(0x80 | (code >> 12 & 63));
    }
    if (code >= 0x800) text += static_cast<char>(0x80 | (code >> 6 & 63));
    if (code >= 0x80) text += static_cast<char>(0x80 | (code & 63));
  }
  return text;
}

// What comes back of a text: the mark of a space is one.
std::string spaced(std::string text) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; ++at)
    text.replace(at, mark.size(), 1, ' ');
  return text;
}

void check_round_trip(const Tokenizer& tokenizer, const std::string& text) {
  const std::string back = spaced(text);
  const Ids ids = tokenizer.encode(text, {.bos = false});
  REQUIRE(tokenizer.decode(ids) == back);
  REQUIRE(tokenizer.decode(tokenizer.encode(text, {.bos = true, .eos = true})) == back);
  const Ids parsed = tokenizer.encode(text, {.bos = false, .parse_special = true});
  REQUIRE(tokenizer.decode(parsed, {.special = true}) == back);
}

}  // namespace

TEST_CASE("every byte alone, and doubled, and between words") {
  for (const bool prefix : {true, false}) {
    const Tokenizer tokenizer = tokenizer_of(strange_pieces(), prefix);
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      check_round_trip(tokenizer, text);
      check_round_trip(tokenizer, text + text);
      check_round_trip(tokenizer, " " + text);
      check_round_trip(tokenizer, "a" + text + "a");
    }
  }
}

TEST_CASE("row 25: all strings of one to four lead and continuation bytes") {
  const std::vector<unsigned char> classes = {0x20, 0x41, 0x80, 0x96, 0x81, 0x9F, 0xA0,
                                              0xBF, 0xC0, 0xC3, 0xE0, 0xE2, 0xED, 0xEF,
                                              0xF0, 0xF4, 0xF5, 0xFE, 0xFF};
  const Tokenizer tokenizer = tokenizer_of(strange_pieces());
  std::vector<std::string> texts = {""};
  for (std::size_t from = 0, length = 1; length <= 4; ++length) {
    const std::size_t to = texts.size();
    for (std::size_t i = from; i < to; ++i) {
      for (const unsigned char byte : classes) {
        texts.push_back(texts[i] + static_cast<char>(byte));
        REQUIRE(tokenizer.decode(tokenizer.encode(texts.back(), {.bos = false})) ==
                spaced(texts.back()));
      }
    }
    from = to;
  }
}

TEST_CASE("random UTF-8") {
  std::mt19937 random(20);
  const Tokenizer with = tokenizer_of(strange_pieces());
  const Tokenizer without = tokenizer_of(strange_pieces(), false);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_utf8(random, 1 + random() % 80);
    check_round_trip(with, text);
    check_round_trip(without, text);
  }
  const auto llama2 = reference("data/tokenizers/ggml-vocab-llama-spm.gguf");
  if (!llama2) return;
  for (int i = 0; i < 500; ++i) check_round_trip(*llama2, random_utf8(random, 1 + random() % 200));
}

TEST_CASE("row 32: an id outside the vocabulary is one error, alone and among others") {
  const Tokenizer tokenizer = tokenizer_of(strange_pieces());
  const Token vocab = tokenizer.vocab();
  REQUIRE(vocab == 278);
  for (const Token id : {-1, vocab, vocab + 1, std::numeric_limits<Token>::max(),
                         std::numeric_limits<Token>::min()}) {
    const std::string expected =
        message("a token id must be at least 0 and below the vocabulary size 278, this one is ", id,
                "; decode ids of the model that belongs to this tokenizer");
    const Ids alone = {id}, first = {id, 2, 4}, last = {2, 4, 1, id};
    for (const Ids& ids : {alone, first, last}) {
      CHECK(message_of<TokenizerError>([&] { tokenizer.decode(ids); }) == expected);
      CHECK(message_of<TokenizerError>([&] { tokenizer.decode(ids, {.special = true}); }) ==
            expected);
    }
    CHECK(message_of<TokenizerError>([&] { tokenizer.piece(id); }) == expected);
    CHECK(message_of<TokenizerError>([&] { tokenizer.bytes_of(id); }) == expected);
    CHECK(message_of<TokenizerError>([&] { tokenizer.kind(id); }) == expected);
    CHECK(message_of<TokenizerError>([&] { tokenizer.with_ends(alone); }) == expected);
    CHECK_FALSE(tokenizer.is_end(id));
    TextStream stream(tokenizer, {.stop = {"ab"}});
    CHECK(stream.push(260) == "");
    CHECK(message_of<TokenizerError>([&] { stream.push(id); }) == expected);
    CHECK(stream.finish() == "a");  // as if the call had not been made
    CHECK(message_of<TokenizerError>([&] { TextStream(tokenizer, {.after = alone}); }) == expected);
  }
  CHECK(tokenizer.decode(Ids{}).empty());
}

TEST_CASE("what a token adds to a text") {
  const Tokenizer tokenizer = tokenizer_of(strange_pieces());
  const auto id = [&](const std::string& piece) { return tokenizer.find(piece).value(); };
  CHECK(tokenizer.bytes_of(id(mark + "a")) == " a");
  CHECK(tokenizer.piece(id(mark + "a")) == mark + "a");
  CHECK(tokenizer.bytes_of(3 + 0xE2) == "\xE2");
  CHECK(tokenizer.piece(3 + 0xE2) == "<0xE2>");
  CHECK(tokenizer.bytes_of(1).empty());
  CHECK(tokenizer.piece(1) == "<s>");
  CHECK(tokenizer.bytes_of(id("<|u|>")) == "<|u|>");
  CHECK(tokenizer.bytes_of(id(mark + mark + mark)) == "   ");
  CHECK(tokenizer.bytes_of(id(std::string("a\0b", 3))) == std::string("a\0b", 3));
  CHECK(tokenizer.kind(id("<|u|>")) == Kind::user_defined);
  CHECK(tokenizer.kind(id("un")) == Kind::unused);
  CHECK_FALSE(tokenizer.find("no such piece").has_value());
}

TEST_CASE("the space in front is taken away where it was added") {
  const Tokenizer tokenizer = tokenizer_of(strange_pieces());
  const Token a = tokenizer.find(mark + "a").value(), user = tokenizer.find("<|u|>").value();
  CHECK(tokenizer.decode(Ids{a, a}) == "a a");
  CHECK(tokenizer.decode(Ids{1, a, 2}) == "a");
  CHECK(tokenizer.decode(Ids{a, user, a}) == "a<|u|>a");
  CHECK(tokenizer.decode(Ids{a, 2, 1, a}) == "a a");  // both implementations keep it here
  CHECK(tokenizer.decode(Ids{a, 2, 1, a}, {.special = true}) == "a</s><s>a");
}
