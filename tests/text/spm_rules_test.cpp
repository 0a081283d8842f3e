// The rules of SentencePiece-style BPE on small vocabularies, each against a second encoder that
// does what the rules say word for word, in quadratic time.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;
using Kind = TokenKind;

const std::string mark = "\u2581";

// One stretch of text: characters, then the best-scored merge again and again, then byte pieces.
// The text must be UTF-8 without U+2581, and the vocabulary must have the byte pieces.
Ids merge_naively(const std::vector<Piece>& pieces, std::string text, bool space_prefix) {
  if (text.empty()) return {};
  std::map<std::string, Token> ids;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool merges = pieces[i].kind == Kind::normal || pieces[i].kind == Kind::unused;
    if (merges) ids[pieces[i].text] = static_cast<Token>(i);
  }
  if (space_prefix && !text.empty()) text = " " + text;
  std::vector<std::string> symbols;
  for (const char c : text) {
    if (c == ' ') {
      symbols.push_back(mark);
    } else if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) {
      symbols.back() += c;
    } else {
      symbols.emplace_back(1, c);
    }
  }
  while (true) {
    std::optional<std::size_t> best;
    double score = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto at = ids.find(symbols[i] + symbols[i + 1]);
      if (at == ids.end()) continue;
      const double s = pieces[static_cast<std::size_t>(at->second)].score;
      if (!best || s > score) {
        best = i;
        score = s;
      }
    }
    if (!best) break;
    symbols[*best] += symbols[*best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
  Ids out;
  for (const std::string& symbol : symbols) {
    if (const auto at = ids.find(symbol); at != ids.end()) {
      out.push_back(at->second);
    } else {
      for (const char c : symbol == mark ? " " : symbol)
        out.push_back(3 + static_cast<unsigned char>(c));
    }
  }
  return out;
}

// The whole of encode(): at each place, from the left, the longest special piece.
Ids encode_naively(const std::vector<Piece>& pieces, const std::string& text, bool space_prefix,
                   bool parse_special) {
  Ids out;
  std::string stretch;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t longest = 0, id = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool special =
          pieces[i].kind == Kind::user_defined ||
          (parse_special && (pieces[i].kind == Kind::control || pieces[i].kind == Kind::unknown));
      const std::string& piece = pieces[i].text;
      if (special && piece.size() > longest && text.compare(at, piece.size(), piece) == 0) {
        longest = piece.size();
        id = i;
      }
    }
    if (longest == 0) {
      stretch += text[at++];
      continue;
    }
    for (const Token t : merge_naively(pieces, stretch, space_prefix)) out.push_back(t);
    stretch.clear();
    out.push_back(static_cast<Token>(id));
    at += longest;
  }
  for (const Token t : merge_naively(pieces, stretch, space_prefix)) out.push_back(t);
  return out;
}

std::string random_text(std::mt19937& random, const std::vector<std::string>& units,
                        std::size_t most) {
  std::string text;
  const std::size_t count = random() % (most + 1);
  for (std::size_t i = 0; i < count; ++i) text += units[random() % units.size()];
  return text;
}

Ids plain(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, {.bos = false});
}

}  // namespace

TEST_CASE("the best score merges first, the leftmost of equals first") {
  const auto pieces =
      marks_and_bytes() + std::vector<Piece>{{"a", -9},  {"b", -9},   {"c", -9},  {"ab", -2},
                                             {"bc", -1}, {"abc", -3}, {"aa", -5}, {"aaa", -4}};
  const Tokenizer tokenizer = tokenizer_of(pieces, false);
  const auto id = [&](const std::string& piece) { return tokenizer.find(piece).value(); };
  CHECK(plain(tokenizer, "abc") == Ids{id("abc")});  // a + bc
  CHECK(plain(tokenizer, "abcb") == Ids{id("abc"), id("b")});
  CHECK(plain(tokenizer, "aaaaa") == Ids{id("aaa"), id("aa")});  // aa, then aaa, from the left
  CHECK(plain(tokenizer, "abab") == Ids{id("ab"), id("ab")});
  CHECK(plain(tokenizer, "z") == Ids{3 + 'z'});
}

TEST_CASE("random vocabularies and texts: the ids of the quadratic encoder") {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const std::vector<std::string> units = {"a", "b", mark, "\u00E9", "\U0001F999"};
    const std::vector<std::string> text_units = {"a",          "b",   " ",  "\u00E9",
                                                 "\U0001F999", "<u>", "<c>"};
    std::vector<Piece> pieces = marks_and_bytes();
    pieces.push_back({"<u>", 0, Kind::user_defined});
    pieces.push_back({"<c>", 0, Kind::control});
    // Half of the vocabularies have all characters as pieces, the others only those drawn.
    if (round % 2 == 0) {
      for (const std::string& unit : units) pieces.push_back({unit, -100});
    } else if (round % 3 == 0) {
      pieces.push_back({mark, -100});
    }
    const std::size_t count = random() % 24;
    for (std::size_t i = 0; i < count; ++i) {
      std::string text = random_text(random, units, 5);
      if (text.empty()) text = "ab";
      // Few scores, so that ties are common.
      pieces.push_back(
          {text, -static_cast<double>(random() % 6), round % 5 == 0 ? Kind::unused : Kind::normal});
    }
    const bool prefix = random() % 2 == 0;
    const Tokenizer tokenizer = tokenizer_of(pieces, prefix);
    for (int i = 0; i < 20; ++i) {
      // Stretches below and above the length at which the merging changes its method.
      const std::string text = random_text(random, text_units, i % 4 == 0 ? 300 : 30);
      const bool parse = random() % 2 == 0;
      INFO("round " << round << ", text " << i << ": " << text);
      const Ids ids = tokenizer.encode(text, {.bos = false, .parse_special = parse});
      REQUIRE(ids == encode_naively(pieces, text, prefix, parse));
      REQUIRE(tokenizer.decode(ids, {.special = true}) == text);
    }
  }
}

TEST_CASE("real vocabularies and lines of real text: the ids of the quadratic encoder") {
  const auto text_file = shared_file("data/texts/shakespeare_64k.txt");
  if (text_file.empty()) return;
  const std::string text = read(text_file);
  for (const std::string name :
       {"models/stories260K.gguf", "data/tokenizers/ggml-vocab-llama-spm.gguf"}) {
    const auto file = shared_file(name);
    if (file.empty()) continue;
    const Metadata metadata = Gguf::open(file).metadata();
    const Tokenizer tokenizer = Tokenizer::from(metadata);
    const auto& scores = metadata.floats("tokenizer.ggml.scores");
    std::vector<Piece> pieces;
    for (Token id = 0; id < tokenizer.vocab(); ++id) {
      pieces.push_back({std::string(tokenizer.piece(id)), scores[static_cast<std::size_t>(id)],
                        tokenizer.kind(id)});
    }
    std::mt19937 random(3);
    for (int i = 0; i < 40; ++i) {
      std::string part = text.substr(random() % (text.size() - 100), 1 + random() % 100);
      // Every other part without spaces, so that merging sees long runs.
      if (i % 2 == 0) part.erase(std::remove(part.begin(), part.end(), ' '), part.end());
      INFO(name << ": " << part);
      REQUIRE(plain(tokenizer, part) == merge_naively(pieces, part, true));
    }
  }
}

TEST_CASE("a character that is no piece of its own still merges") {
  const auto pieces = marks_and_bytes() + std::vector<Piece>{{"xy", -1}, {"xyz", -2}};
  const Tokenizer tokenizer = tokenizer_of(pieces, false);
  CHECK(plain(tokenizer, "xyz") == Ids{260});
  CHECK(plain(tokenizer, "xyy") == Ids{259, 3 + 'y'});
  CHECK(plain(tokenizer, "zx") == Ids{3 + 'z', 3 + 'x'});
}

TEST_CASE("pieces that are parts of a character never make it up") {
  // U+0081 occurs in a piece and is none; both of its bytes are pieces.
  const auto pieces =
      marks_and_bytes() + std::vector<Piece>{{"x\xC2\x81", -1}, {"\xC2", -2}, {"\x81", -3}};
  const Tokenizer tokenizer = tokenizer_of(pieces, false);
  CHECK(plain(tokenizer, "\xC2\x81") == Ids{3 + 0xC2, 3 + 0x81});
  CHECK(plain(tokenizer, "x\xC2\x81") == Ids{259});
  CHECK(plain(tokenizer, "\x81\xC2") == Ids{261, 260});
}

TEST_CASE("a space joins what a piece with a space inside joins, and nothing else") {
  const auto pieces =
      marks_and_bytes() +
      std::vector<Piece>{
          {mark, -9},      {"a", -9}, {"b", -9}, {"b" + mark, -1}, {"b" + mark + "a", -2},
          {mark + "a", -3}};
  const Tokenizer tokenizer = tokenizer_of(pieces, false);
  const auto id = [&](const std::string& piece) { return tokenizer.find(piece).value(); };
  CHECK(plain(tokenizer, "b a") == Ids{id("b" + mark + "a")});
  CHECK(plain(tokenizer, "a a") == Ids{id("a"), id(mark + "a")});
  CHECK(tokenizer.decode(plain(tokenizer, "b a a b")) == "b a a b");
}

TEST_CASE("row 19: a space after a special piece stays a piece of its own") {
  // Scores as SentencePiece writes them: a run of spaces merges last.
  const std::vector<Piece> words = {{mark + mark, -1e9}, {mark, -1e9},     {"x", -50},
                                    {"w", -51},          {"o", -52},       {mark + "x", -1},
                                    {mark + "w", -2},    {mark + "wo", -3}};
  const auto pieces = marks_and_bytes() + words;
  const Tokenizer scored = tokenizer_of(pieces);
  const auto id = [&](const std::string& piece) { return scored.find(piece).value(); };
  const Ids expected = {1, id(mark), id(mark + "x"), 2, id(mark + mark), id(mark + "wo")};
  const EncodeOptions parse{.bos = false, .parse_special = true};
  CHECK(scored.encode("<s> x</s>  wo", parse) == expected);
  CHECK(scored.decode(expected, {.special = true}) == "<s> x</s>  wo");

  // Converters that read a tokenizer.json write equal scores, and the order of the merges beside
  // them. By the scores alone the two spaces would merge first.
  auto flat = pieces;
  for (Piece& piece : flat) piece.score = 0;
  CHECK(tokenizer_of(flat).encode("<s> x", parse) == Ids{1, id(mark + mark), id("x")});
  Metadata metadata = metadata_of(flat);
  metadata.set("tokenizer.ggml.merges",
               array_of(std::vector<std::string>{mark + " x", mark + " w", mark + "w o",
                                                 mark + " " + mark}));
  const Tokenizer listed = Tokenizer::from(metadata);
  CHECK(listed.encode("<s> x</s>  wo", parse) == expected);
  CHECK(listed.encode("wox", {.bos = false}) == Ids{id(mark + "wo"), id("x")});

  std::mt19937 random(19);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = random_text(random, {"x", "wo", "w", " "}, 4) +
                             (i % 2 == 0 ? "<s>" : "</s>") + std::string(random() % 5, ' ') +
                             random_text(random, {"x", "wo", " ", "o"}, 4);
    const Ids ids = scored.encode(text, parse);
    INFO(text);
    REQUIRE(ids == encode_naively(pieces, text, true, true));
    REQUIRE(listed.encode(text, parse) == ids);
    REQUIRE(scored.decode(ids, {.special = true}) == text);
  }
}

TEST_CASE("Llama 2: merges in the order of its scores give the ids of its scores") {
  const auto file = shared_file("data/tokenizers/ggml-vocab-llama-spm.gguf");
  const auto text_file = shared_file("data/texts/shakespeare_64k.txt");
  if (file.empty() || text_file.empty()) return;
  Metadata metadata = Gguf::open(file).metadata();
  const Tokenizer scored = Tokenizer::from(metadata);
  const auto tokens = metadata.texts("tokenizer.ggml.tokens");
  const auto scores = metadata.floats("tokenizer.ggml.scores");
  std::map<std::string, std::size_t> ids;
  for (std::size_t i = 259; i < tokens.size(); ++i) ids[tokens[i]] = i;
  std::vector<std::pair<double, std::string>> lines;
  for (const auto& [piece, id] : ids) {
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      const std::string left = piece.substr(0, cut), right = piece.substr(cut);
      if (ids.contains(left) && ids.contains(right))
        lines.emplace_back(scores[id], left + " " + right);
    }
  }
  CHECK(lines.size() == 61249);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> merges;
  for (const auto& [score, line] : lines) merges.push_back(line);
  metadata.set("tokenizer.ggml.merges", array_of(merges));
  metadata.set("tokenizer.ggml.scores", array_of(std::vector<double>(tokens.size(), 0.0)));
  const Tokenizer listed = Tokenizer::from(metadata);
  const std::string text = read(text_file);
  CHECK(listed.encode(text) == scored.encode(text));
  for (const std::string words :
       {"Hello world", "thunderstorm", " x  y", "\u00E4\u00F6 \u4F60\u597D"}) {
    CHECK(listed.encode(words) == scored.encode(words));
  }
}

TEST_CASE("row 20: no space where the file forbids it") {
  // Gemma's marks: padding 0, end 1, start 2.
  std::vector<Piece> pieces = {{"<pad>", 0, Kind::control},
                               {"<eos>", 0, Kind::control},
                               {"<bos>", 0, Kind::control},
                               {"<unk>", 0, Kind::unknown}};
  const auto bytes = marks_and_bytes();
  pieces.insert(pieces.end(), bytes.begin() + 3, bytes.end());
  const Token first = static_cast<Token>(pieces.size());
  pieces = pieces + std::vector<Piece>{
                        {"te", -1}, {"xt", -2}, {"text", -3}, {mark + "text", -4}, {mark, -5}};
  Metadata metadata = metadata_of(pieces);
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{2});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.unknown_token_id", std::uint32_t{3});
  metadata.set("tokenizer.ggml.padding_token_id", std::uint32_t{0});
  const Tokenizer tokenizer = Tokenizer::from(metadata);
  CHECK(tokenizer.encode("<pad>text<eos>", {.parse_special = true}) == Ids{0, first + 2, 1});
  CHECK(tokenizer.decode(Ids{0, first + 2, 1}, {.special = true}) == "<pad>text<eos>");
  CHECK(tokenizer.decode(Ids{0, first + 2, 1}) == "text");
  CHECK(plain(tokenizer, " text") == Ids{first + 3});
  CHECK(tokenizer.decode(Ids{first + 3}) == " text");
}

TEST_CASE("user-defined pieces are kept whole, control pieces only where they are parsed") {
  const auto pieces = marks_and_bytes() + std::vector<Piece>{{"<|a|>", 0, Kind::user_defined},
                                                             {"<|a|><|b|>", 0, Kind::user_defined},
                                                             {mark + mark, 0, Kind::user_defined},
                                                             {mark, -1},
                                                             {"<|", -2},
                                                             {"a", -3},
                                                             {mark + "a", -4},
                                                             {"", 0, Kind::control},
                                                             {"</", -5},
                                                             {"s>", -6}};
  const Tokenizer tokenizer = tokenizer_of(pieces);
  const auto id = [&](const std::string& piece) { return tokenizer.find(piece).value(); };
  const Token a = id("<|a|>"), ab = id("<|a|><|b|>"), run = id(mark + mark);
  CHECK(plain(tokenizer, "a<|a|>a") == Ids{id(mark + "a"), a, id(mark + "a")});
  CHECK(plain(tokenizer, "<|a|><|b|>") == Ids{ab});  // the longest
  CHECK(plain(tokenizer, "<|a|><|a|>") == Ids{a, a});
  // A run of spaces as a piece of its own is found in the text as it was written.
  CHECK(plain(tokenizer, "a  a") == Ids{id(mark + "a"), run, id(mark + "a")});
  for (const std::string text : {"a<|a|> a", "  a", "<|a|>  <|a|><|b|>a ", " ", "   "}) {
    CHECK(tokenizer.decode(plain(tokenizer, text)) == text);
  }
  // Text that spells a control piece stays text, even where its parts could merge to it.
  for (const Token token : plain(tokenizer, "</s><s>a</s> <unk>")) {
    CHECK(tokenizer.kind(token) != Kind::control);
    CHECK(tokenizer.kind(token) != Kind::unknown);
  }
  CHECK(tokenizer.encode("</s>a<unk>", {.parse_special = true}) == Ids{2, id(mark + "a"), 0});
  // A byte piece spelled out is text as well.
  CHECK(tokenizer.decode(plain(tokenizer, "<0x41>")) == "<0x41>");
}

TEST_CASE("user-defined pieces are read from left to right") {
  const auto pieces = marks_and_bytes() + std::vector<Piece>{{"ab", 0, Kind::user_defined},
                                                             {"bcde", 0, Kind::user_defined},
                                                             {"abcd", 0, Kind::control}};
  const Tokenizer tokenizer = tokenizer_of(pieces, false);
  CHECK(plain(tokenizer, "abcde") == Ids{259, 3 + 'c', 3 + 'd', 3 + 'e'});
  CHECK(plain(tokenizer, "xbcdeab") == Ids{3 + 'x', 260, 259});
  CHECK(tokenizer.encode("abcde", {.parse_special = true}) == Ids{261, 3 + 'e'});
}

TEST_CASE("without byte pieces the unknown piece stands for what cannot be spelled") {
  const auto pieces = marks() + std::vector<Piece>{{mark, -1}, {"a", -2}, {mark + "a", -3}};
  const Tokenizer tokenizer = tokenizer_of(pieces);
  CHECK(plain(tokenizer, "a\u00E9\u00E9 a") == Ids{5, 0, 5});  // neighbours share one
  CHECK(tokenizer.decode(Ids{5, 0, 5}) == "a a");
  CHECK(tokenizer.decode(Ids{5, 0, 5}, {.special = true}) == "a<unk> a");
  CHECK(plain(tokenizer, "\xFF") == Ids{3, 0});
  // Some byte pieces: a character is spelled in bytes or not at all.
  const auto some =
      pieces + std::vector<Piece>{{"<0xC3>", 0, Kind::byte}, {"<0xA9>", 0, Kind::byte}};
  CHECK(plain(tokenizer_of(some), "\u00E9") == Ids{3, 6, 7});
  CHECK(plain(tokenizer_of(some), "\u00E8") == Ids{3, 0});
}

TEST_CASE("U+2581 in a text is one with the space") {
  const std::vector<Piece> words = {{mark, -1}, {"a", -2}, {mark + "a", -3}};
  for (const auto& first : {marks_and_bytes(), marks()}) {
    const Tokenizer tokenizer = tokenizer_of(first + words);
    const auto id = static_cast<Token>(first.size());  // of the mark
    CHECK(plain(tokenizer, mark + "a") == Ids{id, id + 2});
    CHECK(plain(tokenizer, "a" + mark + "a") == Ids{id + 2, id + 2});
    for (const auto& space : {std::string(" "), mark}) {
      CHECK(plain(tokenizer, space + "a" + mark + space + "a") == plain(tokenizer, " a  a"));
    }
    CHECK(tokenizer.decode(plain(tokenizer, mark + "a" + mark + "a")) == " a a");
  }
}

TEST_CASE("a vocabulary without a piece for the space spells it as a byte") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes() + std::vector<Piece>{{"a", -1}});
  CHECK(plain(tokenizer, "a a") == Ids{3 + ' ', 259, 3 + ' ', 259});
  CHECK(tokenizer.decode(plain(tokenizer, " a a")) == " a a");
}

TEST_CASE("start and end ids: the file's word, or the caller's") {
  Metadata metadata = metadata_of(marks_and_bytes());
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  const auto encode = [&](EncodeOptions options) {
    return Tokenizer::from(metadata).encode("x", options);
  };
  CHECK(encode({}) == Ids{3 + 'x'});
  CHECK(encode({.bos = true, .eos = true}) == Ids{1, 3 + 'x', 2});
  metadata.set("tokenizer.ggml.add_bos_token", true);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  CHECK(encode({}) == Ids{1, 3 + 'x', 2});
  CHECK(encode({.bos = false, .eos = false}) == Ids{3 + 'x'});
  CHECK(Tokenizer::from(metadata).encode("") == Ids{1, 2});
}

TEST_CASE("of pieces with the same text the last is used, and all decode") {
  const auto pieces = marks_and_bytes() +
                      std::vector<Piece>{{"a", -1}, {"a", -2}, {"b", -1}, {"ab", -9}, {"ab", -3}};
  const Tokenizer tokenizer = tokenizer_of(pieces, false);
  CHECK(plain(tokenizer, "a") == Ids{260});
  CHECK(plain(tokenizer, "ab") == Ids{263});
  CHECK(tokenizer.decode(Ids{259, 260, 262}) == "aaab");
}

TEST_CASE("one tokenizer serves many threads") {
  const auto pieces =
      marks_and_bytes() + std::vector<Piece>{{mark, -9},        {"a", -8},
                                             {"b", -8},         {"ab", -1},
                                             {mark + "ab", -2}, {"<u>", 0, Kind::user_defined}};
  const Tokenizer tokenizer = tokenizer_of(pieces);
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 7 == 0 ? "<u>b" : " ab";
  const Ids expected = plain(tokenizer, text);
  std::vector<int> right(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t, mine = tokenizer] {
      for (int i = 0; i < 20; ++i)
        right[t] += plain(mine, text) == expected && mine.decode(expected) == text ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(4, 20));
}
