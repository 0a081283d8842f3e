// The tokenizers of GGUF files besides SentencePiece BPE: ids that llama.cpp gave for the same
// vocabularies, and what the formats say where it gave none.
#include <tenon/core/utf8.hpp>

#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;

std::string file_of(const std::string& name) {
  return "data/tokenizers/ggml-vocab-" + name + ".gguf";
}

// A byte-level vocabulary: the 256 bytes in the order of GPT-2, a start piece, and these.
Metadata byte_level(const std::string& pre, const std::vector<std::string>& pieces,
                    const std::vector<std::string>& merges) {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> kinds;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const std::uint32_t code = prints ? byte : next++;
    std::string piece;
    if (code >= 0x80) piece += static_cast<char>(0xC0 | code >> 6);
    piece += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
    tokens.push_back(piece);
    kinds.push_back(1);
  }
  tokens.push_back("<s>");
  kinds.push_back(3);
  for (const std::string& piece : pieces) {
    tokens.push_back(piece);
    kinds.push_back(1);
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", "gpt2");
  metadata.set("tokenizer.ggml.pre", pre.c_str());
  metadata.set("tokenizer.ggml.tokens", array_of(tokens));
  metadata.set("tokenizer.ggml.token_type", array_of(kinds));
  metadata.set("tokenizer.ggml.merges", array_of(merges));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{256});
  return metadata;
}

std::string random_bytes(std::mt19937& random, std::size_t size) {
  constexpr char often[] = "  \n\t'aesST19.,\xC3\xA9\xE2\x96\x81\xED\xA0\x80\xF0\x9F\x99\x82\xFF";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += random() % 3 == 0 ? static_cast<char>(random() % 256)
                              : often[random() % (sizeof often - 1)];
  }
  return text;
}

}  // namespace

TEST_CASE("byte-level BPE: ids of the 47 texts of llama.cpp") {
  for (const std::string name : {"gpt-2", "deepseek-coder"}) {
    INFO(name);
    const auto tokenizer = reference(file_of(name));
    const GoldenLines lines = golden_lines(file_of(name));
    if (!tokenizer || lines.texts.empty()) continue;
    REQUIRE(lines.texts.size() == 47);
    for (std::size_t row = 0; row < lines.texts.size(); ++row) {
      INFO("text " << row << ": " << lines.texts[row]);
      CHECK(tokenizer->encode(lines.texts[row], {.bos = false}) == lines.ids[row]);
      CHECK(tokenizer->decode(lines.ids[row]) == lines.texts[row]);
    }
  }
}

TEST_CASE("WordPiece: ids of the 47 texts of llama.cpp") {
  const auto tokenizer = reference(file_of("bert-bge"));
  const GoldenLines lines = golden_lines(file_of("bert-bge"));
  if (!tokenizer || lines.texts.empty()) return;
  REQUIRE(lines.texts.size() == 47);
  for (std::size_t row = 0; row < lines.texts.size(); ++row) {
    INFO("text " << row << ": " << lines.texts[row]);
    CHECK(tokenizer->encode(lines.texts[row], {.bos = false, .eos = false}) == lines.ids[row]);
    // Case and accents are gone for good; what is decoded spells the same pieces where it is known.
    const std::string decoded = tokenizer->decode(lines.ids[row]);
    if (decoded.find("[UNK]") == std::string::npos) {
      CHECK(tokenizer->decode(tokenizer->encode(decoded, {.bos = false, .eos = false})) == decoded);
    }
  }
  CHECK(tokenizer->encode("hello world") == Ids{101, 7592, 2088, 102});
  CHECK(tokenizer->decode(Ids{101, 7592, 2088, 102}) == "hello world");
}

TEST_CASE("byte-level BPE spells every byte, also those that are no UTF-8") {
  std::mt19937 random(20);
  const auto gpt2 = reference(file_of("gpt-2"));
  const auto deepseek = reference(file_of("deepseek-coder"));
  if (!gpt2 || !deepseek) return;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = random_bytes(random, random() % 24);
    REQUIRE(gpt2->decode(gpt2->encode(text, {.bos = false})) == text);
    // DeepSeek's file gives the bytes that no UTF-8 holds the pieces of the letters of the same
    // number.
    const std::string valid = to_utf8(text);
    REQUIRE(deepseek->decode(deepseek->encode(valid, {.bos = false})) == valid);
  }
}

// Its vocabulary has no pieces for the 13 bytes that no UTF-8 holds. The letters that byte-level
// files write for these bytes are added tokens, found in texts as such: in the tokenizers package
// and llama.cpp these ids mean the letters, so here they do, and such a byte comes back as its
// letter.
TEST_CASE("deepseek-coder: what stands for bytes that are in no UTF-8 is a letter") {
  const auto tokenizer = reference(file_of("deepseek-coder"));
  if (!tokenizer) return;
  const auto encode = [&](const std::string& text) {
    return tokenizer->encode(text, {.bos = false});
  };
  // What the tokenizers package 0.23 makes of this vocabulary.
  CHECK(encode("\u00FF") == Ids{32005});
  CHECK(encode("\u00FF\u00FF") == Ids{32005, 32005});
  CHECK(encode("a\u00FFb") == Ids{64, 32005, 65});
  CHECK(encode("\u00E9") == Ids{584});
  CHECK(tokenizer->decode(Ids{64, 32005, 65}) == "a\u00FFb");
  const std::string letters[] = {"\u00F5", "\u00F7", "\u00C1", "\u00FD", "\u00C0",
                                 "\u00FF", "\u00F8", "\u00FA", "\u00FE", "\u00FC",
                                 "\u00F9", "\u00F6", "\u00FB"};
  std::string changed;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const std::string back = tokenizer->decode(encode(text));
    if (back != text) changed += text;
  }
  CHECK(changed == "\xC0\xC1\xF5\xF6\xF7\xF8\xF9\xFA\xFB\xFC\xFD\xFE\xFF");
  for (Token id = 32000; const std::string& letter : letters) {
    CHECK(encode(letter) == Ids{id});
    CHECK(tokenizer->decode(Ids{id}) == letter);
    // The letters are those of Latin-1: the byte is the code.
    const auto code = static_cast<unsigned>(static_cast<unsigned char>(letter[0]) & 3) << 6 |
                      (static_cast<unsigned char>(letter[1]) & 63u);
    CHECK(encode(std::string(1, static_cast<char>(code))) == Ids{id++});
  }
  const std::string many(1'000'000, '\xFF');
  const Ids ids = encode(many);
  CHECK(ids == Ids(many.size(), 32005));
  CHECK(tokenizer->decode(ids).size() == 2 * many.size());
}

TEST_CASE("row 25: incomplete characters in a byte-level vocabulary") {
  const Tokenizer tokenizer = Tokenizer::from(byte_level("llama-bpe", {}, {}));
  for (const std::string text : {"\xE2\x80", "\xE6\xAD", "\xED\xA0\x80", "\xF5\x80", "a\xE2 b"}) {
    Ids bytes;
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    CHECK(tokenizer.encode(text, {.bos = false}).size() == text.size());
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("a pre-tokenizer that is not known is refused by name") {
  CHECK(contains(message_of<LoadError>([] { Tokenizer::from(byte_level("no-such", {}, {})); }),
                 "\"tokenizer.ggml.pre\" must name a pre-tokenizer that is implemented (default "));
  CHECK(contains(message_of<LoadError>([] { Tokenizer::from(byte_level("gpt-2 mpt", {}, {})); }),
                 "the file says \"gpt-2 mpt\""));
  CHECK(message_of<LoadError>([] { Tokenizer::from(byte_level("kimi-k2", {}, {})); }) == "");
}

TEST_CASE("merges go by rank, and Llama 3 takes whole words first") {
  const std::vector<std::string> pieces = {"ab", "bc", "abc"};
  const std::vector<std::string> merges = {"b c", "a b"};
  const auto ids = [&](const std::string& pre) {
    return Tokenizer::from(byte_level(pre, pieces, merges)).encode("abc", {.bos = false});
  };
  CHECK(ids("gpt-2") == Ids{'a', 258});  // "bc" has the lower rank
  CHECK(ids("llama-bpe") == Ids{259});   // no merge makes it, yet it is a piece
}

TEST_CASE("row 29: a merge that is no pair is refused") {
  for (const std::string line : {"ab", "a  b", " ab", "ab ", "a b c", ""}) {
    INFO('"' << line << '"');
    const auto load = [&] { Tokenizer::from(byte_level("gpt-2", {"ab"}, {"a b", line})); };
    CHECK(contains(message_of<LoadError>(load), "merge 1 of the tokenizer must be two pieces"));
  }
  CHECK(contains(message_of<LoadError>([] { Tokenizer::from(byte_level("gpt-2", {}, {"a b"})); }),
                 "merge 0 of the tokenizer must be two pieces whose concatenation is a piece"));
}

TEST_CASE("start ids: what the pre-tokenizer's model does where the file does not say") {
  CHECK(Tokenizer::from(byte_level("gpt-2", {}, {})).encode("") == Ids{});
  CHECK(Tokenizer::from(byte_level("llama-bpe", {}, {})).encode("") == Ids{256});
  Metadata metadata = byte_level("gpt-2", {}, {});
  metadata.set("tokenizer.ggml.add_bos_token", true);
  CHECK(Tokenizer::from(metadata).encode("") == Ids{256});
}

TEST_CASE("row 68: the end of a turn is found by its name where the file does not say") {
  const auto ends = [](std::vector<Piece> more, bool named) {
    Metadata metadata = metadata_of(marks_and_bytes() + std::move(more));
    if (named) metadata.set("tokenizer.ggml.eot_token_id", std::uint32_t{260});
    const Tokenizer tokenizer = Tokenizer::from(metadata);
    return Ids(tokenizer.ends().begin(), tokenizer.ends().end());
  };
  const Piece eot{"<|eot_id|>", 0, TokenKind::control}, end{"<|end|>", 0, TokenKind::control};
  const Piece other{"<|other|>", 0, TokenKind::control}, last{"<|return|>", 0, TokenKind::control};
  CHECK(ends({eot, other}, false) == Ids{2, 259});
  CHECK(ends({eot, other}, true) == Ids{2, 260});
  CHECK(ends({end}, false) == Ids{2, 259});
  CHECK(ends({end, last}, false) == Ids{2});
  CHECK(ends({{"<|eot_id|>", 0, TokenKind::normal}}, false) == Ids{2});
}
