// Tokenizers trained on our own stories, and what other implementations made of 230 hostile texts:
// see data/tokenizers/record.py.
#include <tenon/core/utf8.hpp>
#include <tenon/text/published_splits.hpp>
#include <tenon/text/splits.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;

std::string data_file(const std::string& name) {
  return read(std::filesystem::path(TENON_SOURCE_DIR) / "tests/data/tokenizers" / name);
}
nlohmann::json data(const std::string& name) {
  return nlohmann::json::parse(data_file(name));
}
std::vector<std::string> lines() {
  return data("lines.json").get<std::vector<std::string>>();
}
Tokenizer from_json(const std::string& name) {
  Metadata metadata;
  metadata.set("tokenizer.huggingface.json", data_file(name + ".json"));
  return Tokenizer::from(metadata);
}

}  // namespace

TEST_CASE("the words of the published pre-tokenizers") {
  const std::vector<std::string> texts = lines();
  REQUIRE(texts.size() == 230);
  const auto recorded = data("words.json");
  for (const auto& [name, rows] : recorded.items()) {
    std::vector<SplitStep> steps;
    for (const std::string_view expression : published_split(name).expressions) {
      steps.push_back(split_at(Regex(expression), SplitBehavior::isolated));
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Pretokens words(texts[i], true);
      for (const SplitStep& step : steps) step(words);
      std::vector<std::size_t> sizes;
      for (const TextRange& range : words.ranges) sizes.push_back(range.end - range.begin);
      INFO(name << ": " << nlohmann::json(texts[i]).dump());
      CHECK(sizes == rows[i].get<std::vector<std::size_t>>());
    }
  }
}

TEST_CASE("tokenizer.json: ids and texts") {
  const std::vector<std::string> texts = lines();
  for (const std::string name :
       {"llama3", "qwen2", "falcon", "llama2", "gemma", "metaspace", "bert", "unigram"}) {
    const Tokenizer tokenizer = from_json(name);
    const auto recorded = data(name + ".ids.json");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO(name << ", line " << i << ": " << nlohmann::json(texts[i]).dump());
      const Ids ids = recorded["ids"][i].get<Ids>();
      CHECK(tokenizer.encode(texts[i], {.parse_special = true}) == ids);
      // There a unigram model finds its marks in plain text, too.
      const bool marked = contains(texts[i], "<s>") || contains(texts[i], "</s>");
      if (name != "unigram" || !marked) {
        CHECK(tokenizer.encode(texts[i], {.bos = false, .eos = false}) ==
              recorded["plain"][i].get<Ids>());
      }
      // There the space that was put in front of a stretch stays in the middle of a text.
      if (name == "llama2" &&
          std::any_of(ids.begin(), ids.end(), [&](Token id) { return id >= 560; }))
        continue;
      CHECK(to_utf8(tokenizer.decode(ids)) == recorded["decoded"][i].get<std::string>());
    }
  }
}

TEST_CASE("tokenizer.model: ids and texts") {
  const std::vector<std::string> texts = lines();
  for (const std::string name :
       {"sentencepiece-bpe", "sentencepiece-unigram", "sentencepiece-bytes"}) {
    Metadata metadata;
    metadata.set("tokenizer.sentencepiece.model", data_file(name + ".model"));
    const Tokenizer tokenizer = Tokenizer::from(metadata);
    const auto recorded = data(name + ".ids.json");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO(name << ", line " << i << ": " << nlohmann::json(texts[i]).dump());
      const Ids ids = recorded["ids"][i].get<Ids>();
      CHECK(tokenizer.encode(texts[i], {.bos = false, .eos = false}) == ids);
      if (contains(texts[i], "\u2581")) continue;  // at the start SentencePiece drops more than one
      // There the unknown piece is decoded to a sign, here to nothing.
      std::string decoded = recorded["decoded"][i].get<std::string>();
      const std::string sign = " \u2047 ";
      for (std::size_t at = 0; (at = decoded.find(sign)) != std::string::npos;)
        decoded.erase(at, sign.size());
      CHECK(tokenizer.decode(ids) == decoded);
    }
  }
}
