#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bpe.hpp"
#include "byte_alphabet.hpp"
#include "character_map.hpp"
#include "gguf_tokenizer.hpp"
#include "normalizers.hpp"
#include "pipeline.hpp"
#include "published_splits.hpp"
#include "space_mark.hpp"
#include "splits.hpp"
#include "spm.hpp"
#include "unigram.hpp"
#include "wordpiece.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline bool stands_in_words(TokenKind kind) {
  return kind == TokenKind::normal || kind == TokenKind::unused || kind == TokenKind::user_defined;
}

struct GgufAlgorithm {
  std::unique_ptr<const TextAlgorithm> algorithm;
  bool bos = false, eos = false;  // what encoding does when the file does not say
};

inline GgufAlgorithm gguf_spm(const Metadata& metadata, const Vocabulary& vocabulary, bool inside) {
  return {Spm::from(metadata, vocabulary, inside), true, false};
}

// "gpt2": byte-level BPE.
inline GgufAlgorithm gguf_bpe(const Metadata& metadata, const Vocabulary& vocabulary, bool) {
  const PublishedSplit& split = published_split(metadata.text_or("tokenizer.ggml.pre", "default"));
  PipelineSteps steps;
  for (const std::string_view expression : split.expressions) {
    steps.split.push_back(split_at(Regex(expression), SplitBehavior::isolated));
  }
  std::vector<std::string> pieces;
  std::vector<bool> whole;
  for (Token id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kind(id);
    pieces.push_back(ByteAlphabet::bytes(vocabulary.piece(id)).value_or(""));
    if (!stands_in_words(kind)) pieces.back().clear();
    whole.push_back(kind == TokenKind::normal);
  }
  Bpe::Merges merges;
  for (const std::string& line : metadata.texts("tokenizer.ggml.merges")) {
    auto [left, right] = merge_of_line(line, merges.size());
    merges.emplace_back(ByteAlphabet::bytes(left).value_or(left),
                        ByteAlphabet::bytes(right).value_or(right));
  }
  const BpeOptions options{.bytes = true,
                           .ignore_merges = split.ignore_merges,
                           .unknown = vocabulary.unknown().value_or(-1)};
  steps.model = std::make_unique<Bpe>(pieces, whole, merges, no_byte_pieces(), options);
  steps.spell = [](const Vocabulary& v, Token id) {
    const std::string piece(v.piece(id));
    const bool bytes = v.kind(id) == TokenKind::normal || v.kind(id) == TokenKind::unused;
    return bytes ? ByteAlphabet::bytes(piece).value_or(piece) : piece;
  };
  return {std::make_unique<Pipeline>(std::move(steps)), split.adds_bos, false};
}

// "bert": WordPiece. Pieces that start a word are written with a mark in front.
inline GgufAlgorithm gguf_wordpiece(const Metadata& metadata, const Vocabulary& vocabulary, bool) {
  constexpr std::string_view known[] = {"default", "bert-bge", "bert-bge-large", "jina-v1-en",
                                        "jina-v2-en"};
  const std::string pre = metadata.text_or("tokenizer.ggml.pre", "default");
  if (std::find(std::begin(known), std::end(known), pre) == std::end(known)) {
    fail<LoadError>(
        "metadata key \"tokenizer.ggml.pre\" of a tokenizer of the kind \"bert\" must be one that "
        "is ",
        "implemented (default, bert-bge, bert-bge-large, jina-v1-en, jina-v2-en), the file says \"",
        printable(pre), "\"; use a checkpoint with one of these");
  }
  if (!vocabulary.unknown()) {
    fail<LoadError>(
        "metadata key \"tokenizer.ggml.unknown_token_id\" must name a token for a tokenizer of "
        "the ",
        "kind \"bert\", it is missing; convert the checkpoint again with a current converter");
  }
  constexpr std::size_t most_characters = 100;  // of a word, as in BERT's own code
  PipelineSteps steps;
  steps.normalize.push_back(clean_for_bert({}));
  steps.split.push_back(split_white_space());
  steps.split.push_back(split_punctuation(SplitBehavior::isolated));
  std::vector<ByteTrie::Entry> heads, tails;
  for (Token id = 0; id < vocabulary.size(); ++id) {
    if (!stands_in_words(vocabulary.kind(id))) continue;
    const std::string_view piece = vocabulary.piece(id);
    const bool head = piece.substr(0, space_mark.size()) == space_mark;
    (head ? heads : tails).emplace_back(head ? piece.substr(space_mark.size()) : piece, id);
  }
  steps.model = std::make_unique<WordPiece>(std::move(heads), std::move(tails),
                                            *vocabulary.unknown(), most_characters);
  steps.spell = [](const Vocabulary& v, Token id) {
    return stands_in_words(v.kind(id)) ? with_spaces(v.piece(id)) : std::string(v.piece(id));
  };
  steps.space_in_front = SpaceInFront::of_every_stretch;
  return {std::make_unique<Pipeline>(std::move(steps)), true, true};
}

// "t5": SentencePiece's unigram model.
inline GgufAlgorithm gguf_unigram(const Metadata& metadata, const Vocabulary& vocabulary,
                                  bool inside) {
  const bool prefix = metadata.flag_or("tokenizer.ggml.add_space_prefix", true);
  PipelineSteps steps;
  std::vector<ByteTrie::Entry> kept;
  std::vector<std::string> spellings;
  for (Token id = 0; id < vocabulary.size(); ++id)
    spellings.push_back(with_spaces(vocabulary.piece(id)));
  for (Token id = 0; id < vocabulary.size(); ++id) {
    if (inside && vocabulary.kind(id) == TokenKind::user_defined)
      kept.emplace_back(spellings[static_cast<std::size_t>(id)], id);
  }
  if (TextStep declared = declared_normalizer(metadata, ByteTrie(std::move(kept))))
    steps.normalize.push_back(std::move(declared));
  if (prefix) steps.normalize.push_back(prepend_text(" "));
  steps.normalize.push_back(replace_text(" ", std::string(space_mark)));
  std::vector<std::string> pieces;
  for (Token id = 0; id < vocabulary.size(); ++id) {
    const bool used = vocabulary.kind(id) == TokenKind::normal;
    pieces.emplace_back(used ? vocabulary.piece(id) : std::string_view());
  }
  steps.model = std::make_unique<Unigram>(pieces, metadata.floats("tokenizer.ggml.scores"),
                                          vocabulary.unknown().value_or(-1),
                                          byte_pieces_of(vocabulary), true);
  steps.spell = [](const Vocabulary& v, Token id) {
    if (v.kind(id) == TokenKind::byte) return std::string(1, static_cast<char>(v.byte_of(id)));
    return stands_in_words(v.kind(id)) ? with_spaces(v.piece(id)) : std::string(v.piece(id));
  };
  steps.space_in_front = prefix ? SpaceInFront::of_every_stretch : SpaceInFront::never;
  steps.caches = false;
  auto pipeline = std::make_unique<Pipeline>(std::move(steps));
  if (inside)
    pipeline->find_in_normalized(
        SpecialMatcher(vocabulary, [&](Token id) { return vocabulary.piece(id); }));
  return {std::move(pipeline), false, true};
}

inline std::vector<Token> gguf_around(const Metadata& metadata, std::string_view key, bool fallback,
                                      std::optional<Token> id, std::string_view id_key) {
  const bool wanted = metadata.flag_or(key, fallback && id);
  if (wanted && !id) {
    fail<LoadError>(
        "metadata key \"", id_key, "\" must name a token because \"", key,
        "\" is true, but it is missing; convert the checkpoint again with a current converter");
  }
  return wanted ? std::vector<Token>{*id} : std::vector<Token>();
}

}  // namespace detail

TENON_INLINE LoadedTokenizer load_gguf_tokenizer(const Metadata& metadata, bool inside) {
  struct Entry {
    std::string_view name;
    detail::GgufAlgorithm (*from)(const Metadata&, const Vocabulary&, bool inside);
  };
  constexpr Entry entries[] = {{"llama", detail::gguf_spm},
                               {"gpt2", detail::gguf_bpe},
                               {"bert", detail::gguf_wordpiece},
                               {"t5", detail::gguf_unigram}};
  const std::string& name = metadata.text("tokenizer.ggml.model");
  std::string known;
  for (const Entry& entry : entries) {
    if (name == entry.name) {
      LoadedTokenizer loaded;
      loaded.vocabulary = Vocabulary::from(metadata);
      const Vocabulary& vocabulary = loaded.vocabulary;
      detail::GgufAlgorithm made = entry.from(metadata, vocabulary, inside);
      for (Token id = 0; inside && id < vocabulary.size(); ++id) {
        if (vocabulary.kind(id) == TokenKind::user_defined) loaded.rules[id].normalized = true;
      }
      loaded.algorithm = std::move(made.algorithm);
      loaded.before = detail::gguf_around(metadata, "tokenizer.ggml.add_bos_token", made.bos,
                                          vocabulary.bos(), "tokenizer.ggml.bos_token_id");
      loaded.after = detail::gguf_around(metadata, "tokenizer.ggml.add_eos_token", made.eos,
                                         vocabulary.eos(), "tokenizer.ggml.eos_token_id");
      return loaded;
    }
    known += message(known.empty() ? "" : ", ", '"', entry.name, '"');
  }
  fail<LoadError>(
      "metadata key \"tokenizer.ggml.model\" must name a tokenizer that is implemented (", known,
      "), the file says \"", printable(name), "\"; use a checkpoint with one of these");
}

}  // namespace tenon::inline TENON_ABI
