// Vocabularies that must not load, and strange ones that must.
#include <pthread.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;
using Ids = std::vector<Token>;
using Kind = TokenKind;

// Metadata cannot forget a key.
Metadata without(const Metadata& metadata, const std::string& key) {
  Metadata rest;
  for (const auto& entry : metadata.entries()) {
    if (entry.key != key) rest.set(entry.key, entry.value);
  }
  return rest;
}

std::string load_error(const Metadata& metadata) {
  return message_of<LoadError>([&] { Tokenizer::from(metadata); });
}

void run_with_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  const auto start = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, start, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Of the processor, so that other work on the machine does not count.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("each array: missing, of another type, of another length") {
  const Metadata good = metadata_of(marks_and_bytes());
  REQUIRE(load_error(good) == "");
  const std::string keys[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.scores",
                              "tokenizer.ggml.token_type"};
  const MetaValue values[] = {
      array_of(std::vector<std::string>(259, "a")),
      array_of(std::vector<double>(259, 1.0)),
      array_of(std::vector<std::int64_t>(259, 1)),
      {MetaType::array, MetaType::u8, std::vector<std::uint64_t>(259, 1)},
      {MetaType::array, MetaType::boolean, std::vector<bool>(259, true)},
      {MetaType::u32, {}, std::uint64_t{259}},
      {MetaType::string, {}, std::string("a")},
  };
  for (const std::string& key : keys) {
    INFO(key);
    CHECK(contains(load_error(without(good, key)), "\"" + key + "\" is missing"));
    int refused = 0;
    for (const MetaValue& value : values) {
      Metadata bad = good;
      bad.set(key, value);
      const std::string error = load_error(bad);
      refused += contains(error, "\"" + key + "\" must be an array of") ? 1 : 0;
    }
    // Strings and numbers each fit one of the seven; a kind may be of any integer type.
    CHECK(refused == (key == "tokenizer.ggml.token_type" ? 5 : 6));
  }
  Metadata bad = good;
  bad.set("tokenizer.ggml.scores", array_of(std::vector<double>(258, 0.0)));
  CHECK(load_error(bad) ==
        "metadata array \"tokenizer.ggml.scores\" must have one entry for each of the 259 tokens, "
        "it has 258; "
        "convert the checkpoint again with a current converter");
  bad = good;
  bad.set("tokenizer.ggml.token_type", array_of(std::vector<std::int64_t>(260, 1)));
  CHECK(contains(
      load_error(bad),
      "\"tokenizer.ggml.token_type\" must have one entry for each of the 259 tokens, it has 260"));
  bad = good;
  bad.set("tokenizer.ggml.tokens", array_of(std::vector<std::string>()));
  CHECK(contains(load_error(bad), "\"tokenizer.ggml.tokens\" must hold 1 to"));
}

TEST_CASE("ids outside the vocabulary are refused by name") {
  const Metadata good = metadata_of(marks_and_bytes());
  for (const std::string role : {"bos", "eos", "unknown", "padding", "eot", "eom", "mask"}) {
    const std::string key = "tokenizer.ggml." + role + "_token_id";
    Metadata metadata = good;
    metadata.set(key, std::uint32_t{258});
    CHECK(load_error(metadata) == "");
    metadata.set(key, std::uint32_t{259});
    CHECK(load_error(metadata) ==
          "metadata key \"" + key +
              "\" must be a token id below the vocabulary size 259, it is 259; "
              "convert the checkpoint again with a current converter");
    metadata.set(key, std::uint32_t{0xFFFFFFFF});
    CHECK(contains(load_error(metadata), "it is 4294967295"));
    metadata.set(key, MetaValue{MetaType::i32, {}, std::int64_t{-1}});
    CHECK(contains(load_error(metadata), "it is -1"));
    metadata.set(key, "2");
    CHECK(contains(load_error(metadata), "must be an integer, the file has type string"));
  }
}

TEST_CASE("kinds and byte pieces") {
  Metadata metadata = metadata_of(marks_and_bytes());
  for (const std::int64_t kind : {0, 7, -1}) {
    std::vector<std::int64_t> kinds(259, 1);
    kinds[4] = kind;
    metadata.set("tokenizer.ggml.token_type", array_of(kinds));
    CHECK(contains(load_error(metadata), message("kinds 1 to 6, token 4 has ", kind)));
  }
  for (const std::string text :
       {"", "a", "<0x4>", "<0x4G>", "<0x411>", "<0X41>", "0x41", "<0x41)"}) {
    const auto pieces = marks_and_bytes() + std::vector<Piece>{{text, 0, Kind::byte}};
    CHECK(contains(load_error(metadata_of(pieces)),
                   "byte piece 259 of \"tokenizer.ggml.tokens\" must be written <0xHH>"));
  }
  CHECK(load_error(
            metadata_of(marks_and_bytes() + std::vector<Piece>{{"<0x4a>", 0, Kind::byte}})) == "");
}

TEST_CASE("what is not implemented is refused by name") {
  const Metadata good = metadata_of(marks_and_bytes());
  for (const std::string model : {"rwkv", "", "plamo2"}) {
    Metadata metadata = good;
    metadata.set("tokenizer.ggml.model", model.c_str());
    CHECK(contains(load_error(metadata),
                   "must name a tokenizer that is implemented (\"llama\", \"gpt2\", \"bert\", "
                   "\"t5\"), the file says \"" +
                       model + "\""));
  }
  CHECK(contains(load_error(without(good, "tokenizer.ggml.model")),
                 "\"tokenizer.ggml.model\"; none is there"));
  Metadata metadata = good;
  metadata.set("tokenizer.ggml.pre", "default");
  metadata.set("tokenizer.ggml.remove_extra_whitespaces", false);
  CHECK(load_error(metadata) == "");
  metadata = good;
  metadata.set("tokenizer.ggml.pre", "qwen2");
  CHECK(contains(load_error(metadata),
                 "\"tokenizer.ggml.pre\" asks for the pre-tokenizer \"qwen2\""));
  metadata = good;
  metadata.set("tokenizer.ggml.precompiled_charsmap",
               MetaValue{MetaType::array, MetaType::u8, std::vector<std::uint64_t>{1}});
  CHECK(contains(load_error(metadata), "the character map of a tokenizer must be a trie"));
  for (const std::string key : {"add_bos_token", "add_eos_token", "add_space_prefix"}) {
    metadata = good;
    metadata.set("tokenizer.ggml." + key, std::uint32_t{1});
    CHECK(contains(load_error(metadata), key + "\" must be a bool, the file has type u32"));
  }
}

TEST_CASE("a start id that is wanted must exist") {
  Metadata metadata = without(metadata_of(marks_and_bytes()), "tokenizer.ggml.bos_token_id");
  CHECK_FALSE(Tokenizer::from(metadata).bos().has_value());
  CHECK(message_of<TokenizerError>([&] { Tokenizer::from(metadata).encode("a", {.bos = true}); }) ==
        "EncodeOptions::bos needs a vocabulary with a start id, this one has none; leave the "
        "option out");
  metadata.set("tokenizer.ggml.add_bos_token", true);
  CHECK(contains(load_error(metadata),
                 "\"tokenizer.ggml.bos_token_id\" must name a token because "
                 "\"tokenizer.ggml.add_bos_token\" is true"));
  // A file that says nothing wants a start id where it has one.
  const Metadata silent = without(metadata_of(marks_and_bytes()), "tokenizer.ggml.add_bos_token");
  CHECK(Tokenizer::from(silent).encode("") == Ids{1});
  CHECK(Tokenizer::from(without(silent, "tokenizer.ggml.bos_token_id")).encode("").empty());
}

TEST_CASE("a vocabulary that cannot encode every text is refused") {
  std::vector<Piece> pieces = marks_and_bytes();
  pieces.pop_back();  // no <0xFF>
  CHECK(load_error(metadata_of(pieces)) == "");
  pieces[0].kind = Kind::normal;
  Metadata metadata = without(metadata_of(pieces), "tokenizer.ggml.unknown_token_id");
  CHECK(contains(load_error(metadata), "must have all 256 byte pieces or an unknown piece"));
  pieces[0].kind = Kind::unknown;  // found by its kind
  metadata = without(metadata_of(pieces), "tokenizer.ggml.unknown_token_id");
  CHECK(Tokenizer::from(metadata).unknown() == Token{0});
}

TEST_CASE("scores must be numbers; merges must be pairs of pieces") {
  const auto pieces =
      marks_and_bytes() + std::vector<Piece>{{"a", INFINITY}, {"b", -INFINITY}, {"ab", NAN}};
  CHECK(
      contains(load_error(metadata_of(pieces)),
               "the score of token 261 in \"tokenizer.ggml.scores\" must be a number, it is NaN"));
  Metadata metadata = metadata_of(pieces);
  metadata.set("tokenizer.ggml.merges", array_of(std::vector<std::string>{"a b"}));
  CHECK(load_error(metadata) == "");
  for (const std::string line : {"", "ab", "a  b", " a", "a ", "b a", "a c", "a b "}) {
    metadata.set("tokenizer.ggml.merges", array_of(std::vector<std::string>{"a b", line}));
    CHECK(contains(load_error(metadata),
                   "entry 1 of \"tokenizer.ggml.merges\" must be two pieces with one space"));
    CHECK(contains(load_error(metadata), "it is \"" + line + "\""));
  }
  metadata.set("tokenizer.ggml.merges", array_of(std::vector<double>{1}));
  CHECK(contains(load_error(metadata), "\"tokenizer.ggml.merges\" must be an array of strings"));
}

TEST_CASE("row 30: one huge piece, an empty one, one with NUL, on a small stack") {
  for (const Kind kind : {Kind::normal, Kind::user_defined, Kind::control, Kind::unused}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1} << 10, std::size_t{100'000}, std::size_t{4} << 20}) {
      std::string text(size, 'a');
      if (size > 0) text[size / 2] = '\0';
      const auto pieces =
          marks_and_bytes() + std::vector<Piece>{{"a", -1}, {"aa", -2}, {text, -3, kind}};
      std::string decoded;
      Ids special;
      run_with_small_stack([&] {
        const Tokenizer tokenizer = tokenizer_of(pieces, false);
        decoded = tokenizer.decode(tokenizer.encode("aaaa" + text + "aa", {.bos = false}));
        special = tokenizer.encode(text, {.bos = false, .parse_special = true});
      });
      INFO("size " << size << ", kind " << static_cast<int>(kind));
      CHECK(decoded == "aaaa" + text + "aa");
      const bool whole = size > 0 && (kind == Kind::user_defined || kind == Kind::control);
      CHECK((special == Ids{261}) == whole);
    }
  }
}

TEST_CASE("hostile vocabularies load, or are refused, in linear time") {
  // 2000 pieces, each the start of the next: two million splits.
  std::vector<Piece> nested = marks_and_bytes();
  for (std::size_t n = 1; n <= 2000; ++n)
    nested.push_back({std::string(n, 'a'), -static_cast<double>(n)});
  CHECK(seconds_of([&] {
          const Tokenizer tokenizer = tokenizer_of(nested);
          const std::string text(100'000, 'a');
          CHECK(tokenizer.decode(tokenizer.encode(text, {.bos = false})) == text);
        }) < 20);
  // 4000 of them: eight million splits, more than any real vocabulary has.
  for (std::size_t n = 2001; n <= 4000; ++n)
    nested.push_back({std::string(n, 'a'), -static_cast<double>(n)});
  CHECK(contains(load_error(metadata_of(nested)), "must have at most 4194304 merges"));
  CHECK(contains(
      load_error(metadata_of(marks_and_bytes() +
                             std::vector<Piece>{{std::string(9 << 20, 'a'), 0, Kind::control}})),
      "the control and user-defined pieces must have at most 8388608 bytes together, token 259 "
      "exceeds that"));
  // Special pieces that nearly match at every byte of the text.
  std::vector<Piece> near = marks_and_bytes();
  for (std::size_t n = 1; n <= 1000; ++n)
    near.push_back({std::string(n, 'a') + "b", 0, Kind::user_defined});
  near.push_back({std::string(1'000'000, 'a') + "c", 0, Kind::user_defined});
  CHECK(seconds_of([&] {
          const Tokenizer tokenizer = tokenizer_of(near, false);
          const std::string text(1'000'000, 'a');
          CHECK(tokenizer.encode(text, {.bos = false}).size() == text.size());
          CHECK(tokenizer.encode(text + "c", {.bos = false}) == Ids{1259});
        }) < 20);
}

TEST_CASE("row 10: a large vocabulary loads quickly, by scores and by merges") {
  // 256k pieces of three letters out of 64 signs, made of 4096 pairs: 510k splits.
  const std::string signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<Piece> pieces = marks_and_bytes();
  std::vector<std::string> merges;
  for (const char a : signs) pieces.push_back({{a}, -1});
  for (const char a : signs) {
    for (const char b : signs) {
      pieces.push_back({{a, b}, -2});
      merges.push_back({a, ' ', b});
    }
  }
  for (const char a : signs) {
    for (const char b : signs) {
      for (const char c : signs) {
        pieces.push_back({{a, b, c}, -static_cast<double>(pieces.size())});
        merges.push_back({a, b, ' ', c});
        merges.push_back({a, ' ', b, c});
      }
    }
  }
  REQUIRE(pieces.size() > 256'000);
  REQUIRE(merges.size() > 500'000);
  Metadata metadata = metadata_of(pieces);
  const auto check = [&] {
    const Tokenizer tokenizer = Tokenizer::from(metadata);
    CHECK(tokenizer.encode("abc", {.bos = false}).size() == 2);  // a space and abc
  };
  CHECK(seconds_of(check) < 10);
  metadata.set("tokenizer.ggml.merges", array_of(merges));
  CHECK(seconds_of(check) < 10);
}

TEST_CASE("row 68: every end id counts") {
  Metadata metadata = metadata_of(marks_and_bytes());
  metadata.set("tokenizer.ggml.eot_token_id", std::uint32_t{7});
  metadata.set("tokenizer.ggml.eom_token_id", std::uint32_t{9});
  metadata.set("tokenizer.ggml.padding_token_id", std::uint32_t{5});
  const Tokenizer tokenizer = Tokenizer::from(metadata);
  for (const Token id : {2, 7, 9}) CHECK(tokenizer.is_end(id));
  for (const Token id : {0, 1, 3, 5, 8}) CHECK_FALSE(tokenizer.is_end(id));
  CHECK(tokenizer.padding() == Token{5});
  // A generation_config.json may name more.
  const Ids more = {8, 2, 11};
  const Tokenizer extended = tokenizer.with_ends(more);
  for (const Token id : {2, 7, 8, 9, 11}) CHECK(extended.is_end(id));
  CHECK(extended.ends().size() == 5);
  CHECK_FALSE(tokenizer.is_end(8));
  CHECK(Tokenizer::from(without(metadata_of(marks_and_bytes()), "tokenizer.ggml.eos_token_id"))
            .ends()
            .empty());
}
