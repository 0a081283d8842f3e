#pragma once
// The unigram language model: of all ways to spell a word in pieces, the one with the highest sum
// of scores. Source: Kudo 2018; SentencePiece.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "byte_trie.hpp"
#include "word_model.hpp"

namespace tenon::inline TENON_ABI {

// A character that is no piece costs the lowest score less 10. Such characters in a row are spelled
// in byte pieces when there are all of them, and else share one unknown piece. Of equal sums the
// one with the longer last piece counts, as in SentencePiece.
class Unigram final : public WordModel {
 public:
  // pieces[id] is the text of a piece as it stands in words, empty for one that never does;
  // `single` adds scores in 32 bits, as SentencePiece does. LoadError when a score is not finite, a
  // piece is longer than 1024 bytes, or there is neither an unknown piece (-1) nor all byte pieces.
  Unigram(const std::vector<std::string>& pieces, const std::vector<double>& scores, Token unknown,
          const BytePieces& byte_pieces, bool single);

  void encode(std::string_view word, std::vector<Token>& out) const override;

 private:
  template <class Number>
  void encode_as(std::string_view word, std::vector<Token>& out) const;

  ByteTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  Token unknown_;
  BytePieces byte_pieces_;
  bool spells_, single_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "unigram.inl"
#endif
