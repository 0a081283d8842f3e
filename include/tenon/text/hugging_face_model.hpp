#pragma once
// The model of a tokenizer.json: BPE, Unigram or WordPiece.
#if defined(TENON_WITH_TEXT)
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "bpe.hpp"
#include "byte_alphabet.hpp"
#include "byte_trie.hpp"
#include "hugging_face_node.hpp"
#include "hugging_face_pieces.hpp"
#include "unigram.hpp"
#include "word_model.hpp"
#include "wordpiece.hpp"

namespace tenon::inline TENON_ABI {
namespace detail {

inline Bpe::Merges merges_of(const HuggingFaceNode& model, bool bytes) {
  Bpe::Merges merges;
  const auto written = [&](const std::string& text) {
    return bytes ? ByteAlphabet::bytes(text).value_or(text) : text;
  };
  for (const HuggingFaceNode& item : model["merges"].items()) {
    std::pair<std::string, std::string> merge;
    if (item.json().list() != nullptr) {
      const auto pair = item.items();
      if (pair.size() != 2) item.wrong("two pieces");
      merge = {pair[0].text(), pair[1].text()};
    } else {
      merge = merge_of_line(item.text(), merges.size());
    }
    merges.emplace_back(written(merge.first), written(merge.second));
  }
  return merges;
}

// `words` and `whole` by id: the bytes of pieces, and whether a word may be made of them.
inline std::unique_ptr<const WordModel> word_piece_of(const HuggingFaceNode& model,
                                                      const HuggingFacePieces& pieces,
                                                      const std::vector<std::string>& words,
                                                      const std::vector<bool>& whole) {
  if (pieces.unknown() < 0) model["unk_token"].wrong("the unknown piece");
  const HuggingFaceNode declared = model["continuing_subword_prefix"];
  const std::string prefix = declared.is_null() ? "##" : declared.text();
  const std::int64_t most = model["max_input_chars_per_word"].integer_or(100);
  if (most < 0 || most > 1000) model["max_input_chars_per_word"].refuse(message(most), "0 to 1000");
  std::vector<ByteTrie::Entry> heads, tails;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (!whole[id]) continue;
    heads.emplace_back(words[id], static_cast<Token>(id));
    if (words[id].compare(0, prefix.size(), prefix) == 0)
      tails.emplace_back(std::string_view(words[id]).substr(prefix.size()), static_cast<Token>(id));
  }
  return std::make_unique<WordPiece>(std::move(heads), std::move(tails), pieces.unknown(),
                                     static_cast<std::size_t>(most));
}

// The model, of one of these types, that turns words into ids. `bytes`: the steps before it write
// bytes as letters.
inline std::unique_ptr<const WordModel> model_of(const HuggingFaceNode& root, std::string_view type,
                                                 const HuggingFacePieces& pieces, bool bytes,
                                                 const Vocabulary& vocabulary) {
  const HuggingFaceNode model = root["model"];
  const auto refuse = [&](std::string_view key) {
    const HuggingFaceNode node = model[key];
    const bool empty = node.is_null() || node.json() == "" || node.json() == 0;
    if (!empty) node.refuse(key, "none");
  };
  const BytePieces byte_pieces =
      pieces.byte_fallback() ? byte_pieces_of(vocabulary) : no_byte_pieces();
  std::vector<std::string> words(pieces.size());
  std::vector<bool> whole(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const bool plain =
        pieces.kind(id) == TokenKind::normal || pieces.kind(id) == TokenKind::user_defined;
    whole[id] = pieces.in_model(id) && plain;
    if (pieces.in_model(id))
      words[id] = bytes ? ByteAlphabet::bytes(pieces.text(id)).value_or("") : pieces.text(id);
  }
  if (type == "BPE") {
    for (const std::string_view key :
         {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      refuse(key);
    const BpeOptions options{.bytes = bytes,
                             .ignore_merges = model["ignore_merges"].flag_or(false),
                             .fuse_unknown = model["fuse_unk"].flag_or(false),
                             .unknown = pieces.unknown()};
    return std::make_unique<Bpe>(words, whole, merges_of(model, bytes), byte_pieces, options);
  }
  if (bytes)
    root["pre_tokenizer"].refuse(message("ByteLevel for the model \"", type, "\""),
                                 "ByteLevel for BPE");
  if (type == "Unigram") {
    std::vector<double> scores = pieces.scores();
    scores.resize(pieces.size());
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      if (!whole[id]) words[id].clear();
    }
    return std::make_unique<Unigram>(words, scores, pieces.unknown(), byte_pieces, false);
  }
  return word_piece_of(model, pieces, words, whole);
}

}  // namespace detail
}  // namespace tenon::inline TENON_ABI
#endif
