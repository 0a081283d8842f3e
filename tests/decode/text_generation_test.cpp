#include <tenon/decode/text_generation.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "decode/contains.hpp"
#include "decode/fake_session.hpp"

namespace {

using namespace tenon;

// Ids 0 <unk>, 1 <s>, 2 </s>, 3 <|eot|>, then one piece for each byte.
constexpr Token first_byte = 4;
constexpr int vocab = first_byte + 256;

Tokenizer byte_tokenizer() {
  std::vector<std::string> pieces{"<unk>", "<s>", "</s>", "<|eot|>"};
  std::vector<std::uint64_t> kinds{2, 3, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof piece, "<0x%02X>", static_cast<unsigned>(byte));
    pieces.emplace_back(piece);
    kinds.push_back(6);
  }
  Metadata metadata;
  const auto array = [](MetaType item, auto values) {
    return MetaValue{MetaType::array, item, std::move(values)};
  };
  const std::vector<double> scores(pieces.size(), 0.0);
  metadata.set("tokenizer.ggml.model", "llama");
  metadata.set("tokenizer.ggml.tokens", array(MetaType::string, pieces));
  metadata.set("tokenizer.ggml.token_type", array(MetaType::i32, kinds));
  metadata.set("tokenizer.ggml.scores", array(MetaType::f32, scores));
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  metadata.set("tokenizer.ggml.eot_token_id", std::uint32_t{3});
  return Tokenizer::from(metadata);
}

constexpr std::string_view prompt = "Say:";
constexpr std::size_t prompt_ids = 5;  // with BOS

// A session that says `text` byte by byte after the prompt, then the token `end` for ever.
fake::Session saying(std::string_view text, Token end = 2, int context = 512) {
  return fake::Session(
      vocab, {.context = context},
      [text, end](std::span<const Token> history, std::span<float> row) {
        std::fill(row.begin(), row.end(), 0.F);
        const std::size_t i = history.size() - prompt_ids;
        const Token next = i < text.size() ? first_byte + static_cast<unsigned char>(text[i]) : end;
        row[static_cast<std::size_t>(next)] = 5;
      });
}

struct Shown {
  std::vector<std::string> pieces;
  std::string joined;
  void operator()(std::string_view piece) {
    pieces.emplace_back(piece);
    joined += piece;
  }
};

TEST_CASE("text over mixed scripts comes in whole characters, one token a byte") {
  const std::string_view text =
      "a\u00e9\u20ac \U0001F999 \u4f60\u597d \u0645\u0631\u062d\u0628\u0627";
  const Tokenizer tokenizer = byte_tokenizer();
  fake::Session session = saying(text);
  Shown shown;
  const TextGeneration out = generate_text(session, tokenizer, prompt, {}, shown);
  CHECK(out.text == text);
  CHECK(shown.joined == text);
  for (const std::string& piece : shown.pieces) {
    CHECK_FALSE(piece.empty());
    CHECK(is_utf8(piece));
  }
  CHECK(out.tokens.finish == FinishReason::stop);
  CHECK(out.tokens.ids.size() == text.size());
  CHECK(out.stop_string == -1);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("text cut inside a character ends in one U+FFFD, at every limit") {
  const std::string_view text = "x\U0001F999y";
  const Tokenizer tokenizer = byte_tokenizer();
  const char* const expected[] = {"",        "x",           "x\uFFFD",     "x\uFFFD",
                                  "x\uFFFD", "x\U0001F999", "x\U0001F999y"};
  for (int most = 0; most <= 6; ++most) {
    fake::Session session = saying(text);
    Shown shown;
    const TextGeneration out =
        generate_text(session, tokenizer, prompt, {.generate = {.max_tokens = most}}, shown);
    CHECK(out.text == expected[most]);
    CHECK(shown.joined == out.text);
    CHECK(out.tokens.finish == FinishReason::length);
  }
}

TEST_CASE("every end token of the tokenizer and of the caller ends the text") {
  const Tokenizer tokenizer = byte_tokenizer();
  for (const Token end : {2, 3}) {
    fake::Session session = saying("bye", end);
    const TextGeneration out = generate_text(session, tokenizer, prompt, {});
    CHECK(out.text == "bye");
    CHECK(out.tokens.finish == FinishReason::stop);
    CHECK(out.tokens.pending == end);
    // Switched off, all of them are.
    const TextGeneration on = generate_text(session, tokenizer, prompt,
                                            {.generate = {.max_tokens = 9}, .ignore_end = true});
    CHECK(on.tokens.finish == FinishReason::length);
    CHECK(on.tokens.ids.size() == 9);
    CHECK(on.text == "bye");
  }
  fake::Session session = saying("bye");
  const std::vector<Token> ends{first_byte + 'e'};
  CHECK(generate_text(session, tokenizer, prompt, {.generate = {.end = ends}}).text == "by");
  CHECK(
      generate_text(session, tokenizer, prompt,
                    {.generate = {.is_end = [](Token token) { return token == first_byte + 'y'; }}})
          .text == "b");
}

TEST_CASE("nothing of a stop string is shown, and a near miss is released") {
  const Tokenizer tokenizer = byte_tokenizer();
  fake::Session session = saying("one DEFGHI two DEFGHIJ three");
  Shown shown;
  const TextGeneration out =
      generate_text(session, tokenizer, prompt, {.stop = {"never", "DEFGHIJ"}}, shown);
  CHECK(out.text == "one DEFGHI two ");
  CHECK(shown.joined == out.text);
  CHECK(out.stop_string == 1);
  CHECK(out.tokens.finish == FinishReason::stop);
  // What is held back when the end token comes is released.
  fake::Session half = saying("end DEF");
  CHECK(generate_text(half, tokenizer, prompt, {.stop = {"DEFGHIJ"}}).text == "end DEF");
}

TEST_CASE("the callback may end the text, and is not called again") {
  const Tokenizer tokenizer = byte_tokenizer();
  fake::Session session = saying("abcdef");
  std::string seen;
  const TextGeneration out =
      generate_text(session, tokenizer, prompt, {.stop = {"cdx"}}, [&](std::string_view piece) {
        seen += piece;
        return seen.size() < 4;
      });
  CHECK(seen == "abcde");  // "cd" was held back until "e" came
  CHECK(out.text == seen);
  CHECK(out.tokens.finish == FinishReason::callback);
}

TEST_CASE("an empty prompt is BOS where the tokenizer has one, and refused without") {
  const Tokenizer tokenizer = byte_tokenizer();
  fake::Session session(vocab, {.context = 64});
  CHECK(generate_text(session, tokenizer, "", {.generate = {.max_tokens = 3}}).tokens.ids.size() ==
        3);
  EncodeOptions bare;
  bare.bos = false;
  CHECK_THROWS_WITH(generate_text(session, tokenizer, "", {.encode = bare}),
                    contains("at least one"));
  CHECK_THROWS_AS(generate_text(session, tokenizer, "long", {.generate = {.max_tokens = -1}}),
                  RequestError);
  CHECK_THROWS_AS(generate_text(session, tokenizer, std::string(64, 'x'), {}), CapacityError);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("any sampler serves") {
  const Tokenizer tokenizer = byte_tokenizer();
  fake::Session session = saying("same");
  CHECK(generate_text(session, tokenizer, prompt, Greedy{}, {}).text == "same");
  const TextOptions options{
      .generate = {.max_tokens = 20, .sampling = {.temperature = 1, .seed = 8}}};
  const std::string drawn = generate_text(session, tokenizer, prompt, options).text;
  CHECK(generate_text(session, tokenizer, prompt, Chain(vocab, 8, Temperature{1}), options).text ==
        drawn);
}

}  // namespace
