// What a tokenizer.json or tokenizer.model may say, and what it may not.
#include <tenon/text/sentencepiece_model.hpp>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using nlohmann::json;
using Ids = std::vector<Token>;

std::string data_file(const std::string& name) {
  return read(std::filesystem::path(TENON_SOURCE_DIR) / "tests/data/tokenizers" / name);
}
Metadata metadata_with(const std::string& text, const std::string& config = "{}") {
  Metadata metadata;
  metadata.set("tokenizer.huggingface.json", text);
  metadata.set("tokenizer.huggingface.config", config);
  return metadata;
}
Tokenizer load(const json& document, const std::string& config = "{}") {
  return Tokenizer::from(metadata_with(document.dump(), config));
}
std::string load_error(const json& document) {
  return message_of<LoadError>([&] { load(document); });
}
json recorded(const std::string& name) {
  return json::parse(data_file(name + ".json"));
}

// A character vocabulary: a, b, ab and a mark, with one merge.
json small() {
  return json::parse(
      R"({"model": {"type": "BPE", "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u2581": 4},
                         "merges": [["a", "b"]], "unk_token": "<unk>"},
                         "added_tokens": [{"id": 5, "content": "<s>", "special": true, "normalized": false},
                                          {"id": 6, "content": "<e>", "special": true, "normalized": false}]})");
}

}  // namespace

TEST_CASE("stories260K: tokenizer.json, tokenizer.model and GGUF agree") {
  const auto gguf = reference("models/stories260K.gguf");
  const auto json_file = shared_file("models/stories260K/tokenizer.json");
  const auto model_file = shared_file("models/stories260K/tokenizer.model");
  const auto expected_file = shared_file("models/expected/stories260K.json");
  if (!gguf || json_file.empty() || model_file.empty() || expected_file.empty()) return;
  const Tokenizer from_json = Tokenizer::from(metadata_with(
      read(json_file), read(shared_file("models/stories260K/tokenizer_config.json"))));
  Metadata metadata;
  metadata.set("tokenizer.sentencepiece.model", read(model_file));
  const Tokenizer from_model = Tokenizer::from(metadata);
  CHECK(from_json.bos() == Token{1});
  CHECK(from_json.eos() == Token{2});
  CHECK(from_json.is_end(2));
  const json expected = json::parse(read(expected_file));
  for (const auto& row : expected["tokenization"]) {
    const auto text = row["text"].get<std::string>();
    INFO(text);
    CHECK(from_json.encode(text) == row["ids"].get<Ids>());
    CHECK(from_model.encode(text) == row["ids"].get<Ids>());
    CHECK(from_json.decode(row["ids"].get<Ids>()) == text);
    CHECK(from_model.decode(row["ids"].get<Ids>()) == text);
  }
  std::mt19937 random(4);
  constexpr char often[] = "  \n'aeosthndLT.,\xC3\xA9\xE2\x80\x99\xF0\x9F\xFF";
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n)
      text += random() % 8 == 0 ? static_cast<char>(random() % 256)
                                : often[random() % (sizeof often - 1)];
    if (random() % 4 == 0) text.insert(random() % (text.size() + 1), "\u2581");
    const Ids ids = gguf->encode(text);
    REQUIRE(from_json.encode(text) == ids);
    REQUIRE(from_model.encode(text) == ids);
    REQUIRE(from_json.decode(ids) == gguf->decode(ids));
    REQUIRE(from_model.decode(ids) == gguf->decode(ids));
    if (contains(text, "\u2581")) continue;  // which comes back as a space
    REQUIRE(gguf->decode(ids) == text);
  }
}

TEST_CASE("the story tokenizer's tokenizer.json") {
  const auto file = shared_file("models/trained/tokenizer/tokenizer.json");
  const auto gguf = reference("models/trained/story-gqa.gguf");
  if (file.empty() || !gguf) return;
  const Tokenizer tokenizer = Tokenizer::from(metadata_with(read(file)));
  std::mt19937 random(6);
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n)
      text += static_cast<char>(random() % 2 == 0 ? random() % 256 : 'a' + random() % 26);
    if (random() % 4 == 0) text.insert(random() % (text.size() + 1), "\u2581");
    const Ids ids = tokenizer.encode(text);
    REQUIRE(ids == gguf->encode(text));
    REQUIRE(tokenizer.decode(ids) == gguf->decode(ids));
    if (contains(text, "\u2581")) continue;  // which comes back as a space
    REQUIRE(tokenizer.decode(ids) == text);
  }
  // What the tokenizers package 0.23 says of this file.
  const std::pair<std::string, Ids> known[] = {
      {"\u2581", {1, 1022, 1022}},
      {"a\u2581b", {1, 261, 268}},
      {"a \u2581b", {1, 261, 1022, 268}},
      {"Once\u2581upon a\u2581time", {1, 392, 391, 261, 375}}};
  for (const auto& [text, ids] : known) {
    CHECK(tokenizer.encode(text) == ids);
    CHECK(gguf->encode(text) == ids);
  }
}

TEST_CASE("row 29: merges as lines and as pairs") {
  json pairs = recorded("llama3"), lines = pairs;
  for (json& merge : lines["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const Tokenizer a = load(pairs), b = load(lines);
  for (const auto& line : json::parse(data_file("lines.json"))) {
    const std::string text = line.get<std::string>();
    REQUIRE(a.encode(text) == b.encode(text));
  }
  // Only a pair can name a piece with a space inside.
  json spaced = small();
  spaced["model"]["vocab"]["a b"] = 7;
  spaced["model"]["vocab"][" b"] = 8;
  spaced["model"]["merges"].push_back(json::array({"a", " b"}));
  CHECK(load_error(spaced) == "");
  for (const json& bad : {json("ab"), json(" a b"), json::array({"a"}), json::array({"a", "x"}),
                          json(1), json::array({1, 2})}) {
    json document = small();
    document["model"]["merges"].push_back(bad);
    INFO(bad);
    CHECK(load_error(document) != "");
  }
}

TEST_CASE("every step that is not implemented is refused by name") {
  const std::pair<const char*, const char*> steps[] = {
      {"/normalizer", R"({"type": "Nmt"})"},
      {"/normalizer",
       R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "ByteLevel"}]})"},
      {"/pre_tokenizer", R"({"type": "UnicodeScripts"})"},
      {"/pre_tokenizer",
       R"({"type": "Split", "pattern": {"Regex": "\\h"}, "behavior": "Isolated"})"},
      {"/pre_tokenizer",
       R"({"type": "Split", "pattern": {"Regex": "[a&&b]"}, "behavior": "Isolated"})"},
      {"/pre_tokenizer",
       R"({"type": "Split", "pattern": {"Regex": "[[:alpha:]]"}, "behavior": "Isolated"})"},
      {"/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"})"},
      {"/pre_tokenizer",
       R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Sideways"})"},
      {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})"},
      {"/post_processor", R"({"type": "Unheard"})"},
      {"/decoder", R"({"type": "CTC"})"},
      {"/decoder",
       R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1}]})"},
      {"/model/type", R"("WordLevel")"},
      {"/model/dropout", "0.5"},
      {"/model/end_of_word_suffix", R"("</w>")"},
      {"/model/continuing_subword_prefix", R"("##")"},
  };
  REQUIRE(load_error(small()) == "");
  for (const auto& [place, value] : steps) {
    json document = small();
    document[json::json_pointer(place)] = json::parse(value);
    const std::string error = load_error(document);
    INFO(place << " = " << value << ": " << error);
    CHECK(contains(error, "this tokenizer cannot be used"));
  }
}

TEST_CASE("a model of another type is refused before anything of it is read") {
  const char* const known = "model.type must be what is implemented (BPE, Unigram, WordPiece), it ";
  json document = small();
  document["model"]["type"] = "WordLevel";
  CHECK(contains(load_error(document), message(known, "asks for the model \"WordLevel\"")));
  document["pre_tokenizer"] = json::parse(R"({"type": "ByteLevel"})");
  CHECK(contains(load_error(document), message(known, "asks for the model \"WordLevel\"")));
  for (const json& vocab : {json(), json::array(), json(1)}) {
    document["model"]["vocab"] = vocab;
    CHECK(contains(load_error(document), message(known, "asks for the model \"WordLevel\"")));
  }
  document["model"]["type"] = 3;
  CHECK(
      contains(load_error(document), message(known, "asks for a model of a type that is number")));
  document["model"].erase("type");
  CHECK_FALSE(contains(load_error(document), known));  // with merges it is BPE
  document["model"].erase("merges");
  CHECK(contains(load_error(document), message(known, "asks for a model of a type that is null")));
}

// As an open checkpoint is to the tokenizer.
struct Opened {
  const Metadata& metadata() const { return keys; }
  std::string_view origin() const { return name; }
  Metadata keys;
  std::string name;
};

TEST_CASE("errors of a checkpoint's tokenizer begin with its folder, whatever that is called") {
  json document = small();
  document["model"]["type"] = "WordLevel";
  const Metadata unknown = metadata_with(document.dump());
  const Metadata wrong = metadata_with(
      small().dump(), R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": "yes"})");
  // Of "." and "model" the messages hold the letters without naming them.
  for (const std::string folder : {"models/a", "models/a/", ".", "model", "tokenizer"}) {
    const auto error = [&](const Metadata& keys) {
      return message_of<LoadError>([&] { Tokenizer::from(Opened{keys, folder}); });
    };
    CHECK(error(unknown).starts_with(folder + ": tokenizer.json: model.type must be"));
    CHECK(error(wrong).starts_with(
        folder + ": tokenizer_config.json: add_bos_token must be true or false, it is string"));
    CHECK(error(Metadata{}).starts_with(folder + ": the checkpoint must have a tokenizer"));
    CHECK(error(metadata_with("{")).starts_with(folder + ": tokenizer.json"));
  }
  CHECK(with_origin("a", "a: what") == "a: what");
  CHECK(with_origin("a", "a/config.json: what") == "a/config.json: what");
  CHECK(with_origin("a/", "a/config.json: what") == "a/config.json: what");
  CHECK(with_origin("a", "ab: what") == "a: ab: what");
  CHECK(with_origin("a", "a") == "a: a");
}

TEST_CASE("damaged files are LoadErrors") {
  for (const std::string text :
       {"", "[", "{}", "[]", "null", "{\"model\": 1}", "{\"model\": {\"type\": \"BPE\"}}"}) {
    INFO(text);
    CHECK(message_of<LoadError>([&] { Tokenizer::from(metadata_with(text)); }) != "");
  }
  const std::pair<const char*, const char*> changes[] = {
      {"/model/vocab/a", "-1"},         {"/model/vocab/a", "1e9"},
      {"/model/vocab/a", "4000000000"}, {"/model/vocab/a", "\"x\""},
      {"/model/vocab", "[]"},           {"/model/merges", "{}"},
      {"/added_tokens/0/id", "-5"},     {"/added_tokens/0/content", "7"},
      {"/added_tokens/0/special", "7"}, {"/added_tokens/0/content", "\"a\""},
      {"/added_tokens", "{}"},          {"/normalizer", "[]"}};
  for (const auto& [place, value] : changes) {
    json document = small();
    document[json::json_pointer(place)] = json::parse(value);
    INFO(place << " = " << value);
    CHECK(load_error(document) != "");
  }
  const std::string model = data_file("sentencepiece-bpe.model");
  for (std::size_t size = 0; size < model.size(); size += 97) {
    // Cut anywhere: an error or a smaller vocabulary, and never more than that.
    Metadata metadata;
    metadata.set("tokenizer.sentencepiece.model", model.substr(0, size));
    message_of<LoadError>([&] { Tokenizer::from(metadata); });
  }
}

TEST_CASE("what goes around a text, and what tokenizer_config.json changes") {
  json document = small();
  CHECK(load(document).encode("ab") == Ids{3});
  document["post_processor"] =
      json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
      {"SpecialToken": {"id": "<e>", "type_id": 0}}], "special_tokens": {"<s>": {"ids": [5]}, "<e>": {"ids": [6, 6]}}}]})");
  CHECK(load(document).encode("ab") == Ids{5, 3, 6, 6});
  CHECK(load(document).encode("ab", {.bos = false, .eos = false}) == Ids{3});
  const std::string names = R"("bos_token": "<s>", "eos_token": {"content": "<e>"})";
  const Tokenizer named = load(document, "{" + names + "}");
  CHECK(named.bos() == Token{5});
  CHECK(named.eos() == Token{6});
  CHECK(named.encode("ab") == Ids{5, 3, 6, 6});
  const std::string llama =
      R"(, "tokenizer_class": "LlamaTokenizerFast", "add_bos_token": false, "add_eos_token": true)";
  CHECK(load(document, "{" + names + llama + "}").encode("ab") == Ids{3, 6});
}

TEST_CASE("row 68: every end id there is") {
  Metadata metadata = metadata_with(small().dump(), R"({"eos_token": "<e>"})");
  metadata.set("tokenizer.ggml.eos_token_ids", array_of(std::vector<std::int64_t>{5, 3}));
  const Tokenizer tokenizer = Tokenizer::from(metadata);
  CHECK(tokenizer.eos() == Token{6});
  for (const Token id : {3, 5, 6}) CHECK(tokenizer.is_end(id));
  CHECK_FALSE(tokenizer.is_end(1));
  metadata.set("tokenizer.ggml.eos_token_ids", array_of(std::vector<std::int64_t>{99}));
  CHECK(contains(message_of<LoadError>([&] { Tokenizer::from(metadata); }),
                 "eos_token_ids\" must be a token id"));
}

TEST_CASE("row 30: a piece of a megabyte in each format") {
  const std::string piece(1'000'000, 'a');
  json document = small();
  document["model"]["vocab"][piece] = 7;
  document["model"]["vocab"][""] = 8;
  document["model"]["vocab"][std::string("a\0b", 3)] = 9;
  const Tokenizer tokenizer = load(document);
  CHECK(tokenizer.piece(7) == piece);
  CHECK(tokenizer.encode(piece).size() == piece.size());
  json unigram;
  unigram["model"] = json::object({{"type", "Unigram"}, {"unk_id", 0}});
  unigram["model"]["vocab"] = json::array({json::array({"<unk>", 0}), json::array({piece, -1})});
  CHECK(contains(load_error(unigram), "at most 1024 bytes, it has the score -1 and 1000000 bytes"));
}

TEST_CASE("row 32: ids of pieces that do not exist") {
  const Tokenizer tokenizer = load(small());
  for (const Token id : {-1, 7, 1 << 30, INT32_MAX}) {
    CHECK(contains(message_of<TokenizerError>([&] {
                     tokenizer.decode(Ids{1, id});
                   }),
                   "below the vocabulary size 7"));
  }
}
