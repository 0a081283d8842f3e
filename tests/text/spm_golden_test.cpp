// Ids that other implementations gave for the same vocabularies: see README.md of the reference
// data. The rows are those of the list of known faults.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;

const std::string llama2 = "data/tokenizers/ggml-vocab-llama-spm.gguf";

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

nlohmann::json json_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return nlohmann::json::parse(in);
}

}  // namespace

TEST_CASE("stories260K: ids of 20 texts") {
  const auto tokenizer = reference("models/stories260K.gguf");
  const auto file = shared_file("models/expected/stories260K.json");
  if (!tokenizer || file.empty()) return;
  const auto expected = json_of(file);
  CHECK(tokenizer->vocab() == 512);
  CHECK(tokenizer->bos() == Token{1});
  CHECK(tokenizer->eos() == Token{2});
  CHECK(tokenizer->unknown() == Token{0});
  CHECK_FALSE(tokenizer->padding().has_value());
  REQUIRE(expected["tokenization"].size() == 20);
  for (const auto& row : expected["tokenization"]) {
    const auto text = row["text"].get<std::string>();
    INFO(text);
    CHECK(tokenizer->encode(text) == row["ids"].get<Ids>());
    CHECK(tokenizer->decode(row["ids"].get<Ids>()) == text);
  }
  const auto& greedy = expected["greedy"];
  Ids ids = greedy["prompt_ids"].get<Ids>();
  CHECK(tokenizer->encode(greedy["prompt"].get<std::string>()) == ids);
  for (const auto& id : greedy["ids"]) ids.push_back(id.get<Token>());
  CHECK(tokenizer->decode(ids) == greedy["text"].get<std::string>());
  const auto story = shared_file("data/stories/story4k.txt");
  if (story.empty()) return;
  const std::string text = read(story);
  const Ids story_ids = tokenizer->encode(text, {.bos = false});
  CHECK(story_ids.size() == expected["nll"]["n_tokens"].get<std::size_t>());
  CHECK(tokenizer->decode(story_ids) == text);
}

TEST_CASE("Llama 2: ids of the 47 texts of llama.cpp") {
  const auto tokenizer = reference(llama2);
  const GoldenLines lines = golden_lines(llama2);
  if (!tokenizer || lines.texts.empty()) return;
  REQUIRE(lines.texts.size() == 47);
  for (std::size_t row = 0; row < lines.texts.size(); ++row) {
    INFO("text " << row << ": " << lines.texts[row]);
    CHECK(tokenizer->encode(lines.texts[row], {.bos = false}) == lines.ids[row]);
    CHECK(tokenizer->decode(lines.ids[row]) == lines.texts[row]);
  }
}

TEST_CASE("the story tokenizer: ids, and texts of every kind of bytes") {
  const auto tokenizer = reference("models/trained/story-gqa.gguf");
  const auto file = shared_file("models/trained/tokenizer/expected.json");
  if (!tokenizer || file.empty()) return;
  const auto cases = json_of(file)["cases"];
  REQUIRE(cases.size() >= 24);
  for (const auto& row : cases) {
    INFO(row["hex"]);
    const std::string text = from_hex(row["hex"].get<std::string>());
    CHECK(tokenizer->encode(text, {.bos = false}) == row["ids"].get<Ids>());
    CHECK(tokenizer->decode(row["ids"].get<Ids>()) ==
          from_hex(row["decoded_hex"].get<std::string>()));
  }
}

TEST_CASE("the trained models: their prompts and the texts they went on with") {
  for (const std::string name : {"gqa", "draft", "mha", "mla", "cla", "mamba2", "diffusion"}) {
    INFO(name);
    const auto tokenizer = reference("models/trained/story-" + name + ".gguf");
    const auto file = shared_file("models/trained/story-" + name + "/expected.json");
    if (!tokenizer || file.empty()) continue;
    CHECK(tokenizer->vocab() == 1024);
    CHECK(tokenizer->padding() == Token{2});
    CHECK(tokenizer->kind(1023) == TokenKind::control);
    const auto expected = json_of(file);
    const auto& runs = expected.contains("greedy") ? expected["greedy"] : expected["decode"];
    REQUIRE(runs.size() >= 2);
    for (const auto& run : runs) {
      Ids ids = run["prompt_ids"].get<Ids>();
      CHECK(tokenizer->encode(run["prompt"].get<std::string>()) == ids);
      for (const auto& id : run["ids"]) ids.push_back(id.get<Token>());
      CHECK(tokenizer->decode(ids) == run["text"].get<std::string>());
    }
  }
}

TEST_CASE("row 16: leading spaces") {
  const auto tokenizer = reference(llama2);
  if (!tokenizer) return;
  const std::pair<std::string, Ids> rows[] = {
      {"Hello world", {15043, 3186}},
      {" Hello world", {29871, 15043, 3186}},
      {"  Hello", {259, 15043}},
      {"   Hello", {1678, 15043}},
      {"\tHello", {29871, 12, 10994}},
      {" ", {259}},
      {"  ", {1678}},
      {"   ", {268}},
      {"", {}},
  };
  for (const auto& [text, ids] : rows) {
    INFO('"' << text << '"');
    CHECK(tokenizer->encode(text, {.bos = false}) == ids);
    CHECK(tokenizer->decode(ids) == text);
  }
  CHECK(tokenizer->encode("") == Ids{1});
  CHECK(tokenizer->decode(Ids{1}).empty());
}

TEST_CASE("row 17: byte pieces, and the first word's space") {
  const auto tokenizer = reference(llama2);
  if (!tokenizer) return;
  CHECK(tokenizer->encode("This is \U0001F999.cpp") ==
        Ids{1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223});
  // A woman, a zero-width joiner and a laptop; a flag of two regional indicators. The vocabulary
  // has a piece for the joiner alone.
  const Ids laptop = tokenizer->encode("\U0001F469\u200D\U0001F4BB", {.bos = false});
  CHECK(laptop == Ids{29871, 243, 162, 148, 172, 30722, 243, 162, 149, 190});
  CHECK(tokenizer->decode(laptop) == "\U0001F469\u200D\U0001F4BB");
  const Ids flag = tokenizer->encode("\U0001F1E9\U0001F1EA", {.bos = false});
  CHECK(flag == Ids{29871, 243, 162, 138, 172, 243, 162, 138, 173});
  CHECK(tokenizer->decode(flag) == "\U0001F1E9\U0001F1EA");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const Ids ids = tokenizer->encode(text, {.bos = false});
    INFO("byte " << byte);
    CHECK(tokenizer->decode(ids) == text);
    // A carriage return after a space is a piece.
    const bool spelled = (byte < 0x20 && byte != '\r') || byte >= 0x7F;
    if (spelled) CHECK(ids == Ids{29871, 3 + byte});
  }
}

TEST_CASE("row 25: incomplete characters") {
  const auto tokenizer = reference(llama2);
  if (!tokenizer) return;
  CHECK(tokenizer->encode("\xE2\x80", {.bos = false}) == Ids{29871, 3 + 0xE2, 3 + 0x80});
  CHECK(tokenizer->encode("\xE6\xAD", {.bos = false}) == Ids{29871, 3 + 0xE6, 3 + 0xAD});
  // The text after a byte that is no character is encoded as if it stood there alone.
  CHECK(tokenizer->encode("\xE2world", {.bos = false}) == Ids{29871, 3 + 0xE2, 11526});
}

TEST_CASE("the text of every piece encodes to ids that give it back") {
  const auto tokenizer = reference(llama2);
  if (!tokenizer) return;
  for (Token id = 3; id < tokenizer->vocab(); ++id) {
    const std::string text = tokenizer->bytes_of(id);
    const Ids ids = tokenizer->encode(text, {.bos = false});
    INFO(id);
    REQUIRE(tokenizer->decode(ids) == text);
  }
}
