#include <tenon/text/text_stream.hpp>

#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;
using Kind = TokenKind;

// The bytes and every part of the text: a model over it can emit any cut of it.
Tokenizer parts_of(const std::string& text) {
  std::vector<Piece> pieces = marks_and_bytes();
  for (std::size_t from = 0; from < text.size(); ++from) {
    for (std::size_t n = 1; from + n <= text.size(); ++n)
      pieces.push_back({text.substr(from, n), -1});
  }
  return tokenizer_of(pieces, false);
}
Ids bytes(const std::string& text) {
  Ids ids;
  for (const char c : text) ids.push_back(3 + static_cast<unsigned char>(c));
  return ids;
}

struct Shown {
  std::string text;
  int stop = -1;
  std::vector<std::string> steps = {};
};
Shown show(const Tokenizer& tokenizer, const Ids& ids, const StreamOptions& options = {}) {
  TextStream stream(tokenizer, options);
  Shown shown;
  for (const Token id : ids) {
    const std::string step(stream.push(id));
    CHECK(is_utf8(step));
    shown.steps.push_back(step);
    shown.text += step;
  }
  shown.steps.emplace_back(stream.finish());
  shown.text += shown.steps.back();
  shown.stop = stream.stop();
  CHECK(stream.stopped() == (shown.stop >= 0));
  CHECK(stream.finish() == "");
  CHECK(stream.push(3) == "");
  return shown;
}

// What must be shown, from the whole text: up to the stop string that is complete first.
Shown cut(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    int best = -1;
    std::size_t size = 0;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      const std::string& stop = stops[i];
      if (stop.size() <= end && stop.size() > size &&
          text.compare(end - stop.size(), stop.size(), stop) == 0) {
        best = static_cast<int>(i);
        size = stop.size();
      }
    }
    if (best >= 0) return {text.substr(0, end - size), best};
  }
  return {text};
}

const std::string mixed =
    "Hi \u00E9\u0301 \u0431\u044A\u043B \u0995\u09CD\u09B7 \u1780\u17B6 \u4F60\u597D\uFF5E "
    "\U0001F999\U0001F636\u200D\U0001F32B\uFE0F\n";

}  // namespace

TEST_CASE("row 67: half a character is never shown") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes(), false);
  // As two pieces of two bytes each, and byte by byte.
  const Tokenizer llama = parts_of("\xF0\x9F\xA6\x99");
  const auto id = [&](const std::string& piece) { return llama.find(piece).value(); };
  const Shown halves = show(llama, {id("\xF0\x9F"), id("\xA6\x99")});
  CHECK(halves.steps == std::vector<std::string>{"", "\U0001F999", ""});
  const Shown single = show(tokenizer, bytes("a\xF0\x9F\xA6\x99z"));
  CHECK(single.steps == std::vector<std::string>{"a", "", "", "", "\U0001F999", "z", ""});
  // Cut inside a character: one replacement, at the end.
  CHECK(show(tokenizer, bytes("a\xF0\x9F\xA6")).steps ==
        std::vector<std::string>{"a", "", "", "", "\uFFFD"});
  // What can no longer become a character is shown at once.
  CHECK(show(tokenizer, bytes("\xE2\x80"
                              "A"))
            .steps == std::vector<std::string>{"", "",
                                               "\uFFFD"
                                               "A",
                                               ""});
  CHECK(show(tokenizer, bytes("\x80")).steps == std::vector<std::string>{"\uFFFD", ""});
}

TEST_CASE("row 67: byte by byte over mixed scripts, cut anywhere, the deltas make up the text") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes(), false);
  CHECK(show(tokenizer, bytes(mixed)).text == mixed);
  for (std::size_t n = 0; n <= mixed.size(); ++n) {
    const Ids ids = bytes(mixed.substr(0, n));
    REQUIRE(show(tokenizer, ids).text == to_utf8(tokenizer.decode(ids)));
  }
  std::mt19937 random(67);
  for (int i = 0; i < 500; ++i) {
    Ids ids;
    for (int n = 0; n < 40; ++n) ids.push_back(static_cast<Token>(random() % 259));
    REQUIRE(show(tokenizer, ids).text == to_utf8(tokenizer.decode(ids)));
    REQUIRE(show(tokenizer, ids, {.special = true}).text ==
            to_utf8(tokenizer.decode(ids, {.special = true})));
  }
}

TEST_CASE("real texts in pieces: the deltas make up the decoded text") {
  const auto tokenizer = reference("data/tokenizers/ggml-vocab-llama-spm.gguf");
  if (!tokenizer) return;
  for (const std::string& text : {mixed, std::string(" Hello  world\n"),
                                  std::string("\xE4\xBD"
                                              "a")}) {
    const Ids ids = tokenizer->encode(text);
    CHECK(show(*tokenizer, ids).text == to_utf8(text));
    CHECK(show(*tokenizer, ids, {.stop = {"~never~"}}).text == to_utf8(text));
  }
}

TEST_CASE("row 65: no part of a stop string is shown, however it is cut") {
  const std::string text = "ABCDEFGHIJK";
  const Tokenizer tokenizer = parts_of(text);
  const std::vector<std::string> stops = {"DEFGHIJ"};
  for (std::size_t i = 1; i < text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      Ids ids;
      for (const std::string& part : {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) {
        if (!part.empty()) ids.push_back(tokenizer.find(part).value());
      }
      const Shown shown = show(tokenizer, ids, {.stop = stops});
      INFO(i << " " << j);
      CHECK(shown.text == "ABC");
      CHECK(shown.stop == 0);
    }
  }
}

TEST_CASE("row 65: overlapping stop strings and near misses") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes(), false);
  const auto shown = [&](const std::string& text, const std::vector<std::string>& stops) {
    return show(tokenizer, bytes(text), {.stop = stops});
  };
  // The one that is complete first wins; the other order of the list changes nothing.
  CHECK(shown("xabc", {"ab", "abc"}).text == "x");
  CHECK(shown("xabc", {"ab", "abc"}).stop == 0);
  CHECK(shown("xabc", {"abc", "ab"}).stop == 1);
  CHECK(shown("xabc", {"abc", "b"}).text == "xa");
  CHECK(shown("xabc", {"bc", "abc"}).stop == 1);  // both end here: the longest
  CHECK(shown("xabc", {"bc", "abc"}).text == "x");
  // A near miss is released as soon as it is one, up to where a stop string can start again.
  CHECK(shown("abdx", {"abc"}).steps == std::vector<std::string>{"", "", "abd", "x", ""});
  CHECK(shown("ababc", {"abc"}).steps == std::vector<std::string>{"", "", "ab", "", "", ""});
  CHECK(shown("aab", {"aac"}).steps == std::vector<std::string>{"", "", "aab", ""});
  CHECK(shown("aaac", {"aac"}).text == "a");
  // The end of the stream releases a tail that did not become one.
  CHECK(shown("xab", {"abc"}).steps == std::vector<std::string>{"x", "", "", "ab"});
  CHECK(shown("ab\xE2", {"abc"}).text == "ab\uFFFD");
  // A stop string of characters that arrive in bytes; one that only the last bytes distinguish.
  CHECK(shown("a\u00E9", {"\u00E9"}).steps == std::vector<std::string>{"a", "", "", ""});
  CHECK(shown("a\u00E8", {"\u00E9"}).steps == std::vector<std::string>{"a", "", "\u00E8", ""});
  CHECK(shown("a\xE2", {"\uFFFD"}).text == "a");  // it may come with finish()
  CHECK(shown("a\xE2", {"\uFFFD"}).stop == 0);
}

TEST_CASE("row 65: random stop strings, texts and cuts") {
  std::mt19937 random(65);
  const std::vector<std::string> units = {"a", "b", "\u00E9", "\U0001F999", " "};
  const auto draw = [&](std::size_t most) {
    std::string text = units[random() % units.size()];
    for (std::size_t n = random() % most; n > 0; --n) text += units[random() % units.size()];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    const std::string text = draw(12);
    const Tokenizer tokenizer = parts_of(text);
    std::vector<std::string> stops;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) stops.push_back(draw(4));
    const Shown expected = cut(text, stops);
    for (int cuts = 0; cuts < 10; ++cuts) {
      Ids ids;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t n = 1 + random() % (text.size() - at);
        ids.push_back(tokenizer.find(text.substr(at, n)).value());
        at += n;
      }
      const Shown shown = show(tokenizer, ids, {.stop = stops});
      INFO(text);
      REQUIRE(shown.text == expected.text);
      // Of equal stop strings either may be named.
      REQUIRE((shown.stop < 0) == (expected.stop < 0));
      if (shown.stop >= 0) {
        REQUIRE(stops[static_cast<std::size_t>(shown.stop)] ==
                stops[static_cast<std::size_t>(expected.stop)]);
      }
    }
  }
}

TEST_CASE("a stop string over special pieces and spaces") {
  const auto pieces = marks_and_bytes() + std::vector<Piece>{{"\u2581", -1},
                                                             {"a", -2},
                                                             {"\u2581"
                                                              "a",
                                                              -3},
                                                             {"<|u|>", 0, Kind::user_defined}};
  const Tokenizer tokenizer = tokenizer_of(pieces);
  const Ids ids = tokenizer.encode("a a<|u|> a", {.bos = false});
  CHECK(show(tokenizer, ids).text == "a a<|u|> a");
  CHECK(show(tokenizer, ids, {.stop = {"<|u|> "}}).text == "a a");
  CHECK(show(tokenizer, ids, {.stop = {"a a<"}}).text == "");
}

TEST_CASE("a stream goes on after a prompt, or starts a text") {
  const auto pieces = marks_and_bytes() + std::vector<Piece>{{"\u2581"
                                                              "a",
                                                              -3},
                                                             {"<|u|>", 0, Kind::user_defined}};
  const Tokenizer tokenizer = tokenizer_of(pieces);
  const Token a = 259, user = 260;
  const Ids plain = {1, a}, start = {1}, turn = {1, a, user}, end = {a, 2};
  CHECK(show(tokenizer, {a, a}).text == "a a");
  CHECK(show(tokenizer, {a, a}, {.after = plain}).text == " a a");
  CHECK(show(tokenizer, {a, a}, {.after = start}).text == "a a");
  CHECK(show(tokenizer, {a, a}, {.after = turn}).text == "a a");
  CHECK(show(tokenizer, {a, a}, {.after = end}).text == "a a");
  CHECK(show(tokenizer, {a, 2, 1, a}).text == "a a");
  CHECK(show(tokenizer, {a, 2, a}, {.special = true}).text == "a</s>a");
}

TEST_CASE("stop strings must be text") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes());
  const auto error = [&](std::vector<std::string> stops) {
    return message_of<RequestError>([&] { TextStream(tokenizer, {.stop = stops}); });
  };
  CHECK(error({"a", ""}) == "stop string 1 must be UTF-8 and not empty, it is \"\"; leave it out");
  CHECK(error({"\xA9x"}) ==
        "stop string 0 must be UTF-8 and not empty, it is \"\\xa9x\"; leave it out");
  CHECK(error({}) == "");
}

TEST_CASE("a long stop string that nearly matches does not slow the stream down") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes(), false);
  const std::string text(200'000, 'a');
  TextStream stream(tokenizer, {.stop = {std::string(100'000, 'a') + "b"}});
  std::size_t size = 0;
  for (const Token id : bytes(text)) size += stream.push(id).size();
  CHECK(size == 100'000);
  CHECK(stream.finish() == std::string(100'000, 'a'));
}

TEST_CASE("every byte shown names the id that it came from") {
  const Tokenizer tokenizer = parts_of("abc");
  const auto sources = [&](const Ids& ids, const StreamOptions& options = {}) {
    TextStream stream(tokenizer, options);
    std::vector<std::size_t> all;
    std::size_t shown = 0;
    const auto take = [&](std::string_view text) {
      REQUIRE(stream.sources().size() == text.size());
      shown += text.size();
      all.insert(all.end(), stream.sources().begin(), stream.sources().end());
    };
    for (const Token id : ids) take(stream.push(id));
    take(stream.finish());
    REQUIRE(all.size() == shown);
    return all;
  };
  using Sources = std::vector<std::size_t>;
  // One id a byte, so every byte of a whole character has an id of its own.
  const Ids ids = bytes(mixed);
  const Sources each = sources(ids);
  REQUIRE(each.size() == mixed.size());
  for (std::size_t i = 0; i < each.size(); ++i) CHECK(each[i] == i);
  const Token abc = *tokenizer.find("abc"), bc = *tokenizer.find("bc");
  CHECK(sources({abc, bc}) == Sources{0, 0, 0, 1, 1});
  // What a stop string held back and then let go keeps its ids; what it took has none.
  CHECK(sources({abc, bc}, {.stop = {"cbx"}}) == Sources{0, 0, 0, 1, 1});
  CHECK(sources({abc, bc}, {.stop = {"cb"}}) == Sources{0, 0});
  // A replacement character stands for the first of its bytes.
  CHECK(sources(bytes("\xE2\x80")) == Sources{0, 0, 0});
  CHECK(sources(bytes("a\xE2\x80z")) == Sources{0, 1, 1, 1, 3});
  CHECK(sources(bytes("\xF0\x9F\xF0\x9F\x99\x82")) == Sources{0, 0, 0, 2, 3, 4, 5});
  CHECK(sources(bytes("\xE0\x80")) == Sources{0, 0, 0, 1, 1, 1});
}
