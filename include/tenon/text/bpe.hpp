#pragma once
// Byte-pair encoding with a list of merges: byte-level (GPT-2 and most since) or of characters.
// Source: Sennrich et al. 2016; Radford et al. 2019; the "BPE" model of tokenizer.json.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "byte_trie.hpp"
#include "character_table.hpp"
#include "merge.hpp"
#include "pair_filter.hpp"
#include "word_model.hpp"

namespace tenon::inline TENON_ABI {

struct BpeOptions {
  bool bytes = false;          // the symbols are bytes; otherwise characters
  bool ignore_merges = false;  // a word that is a piece is that piece, whatever the merges say
  bool fuse_unknown = false;   // neighbours that only the unknown piece can stand for share one
  Token unknown = -1;          // -1: what has no piece is left out
};

// A character that is no piece is spelled in byte pieces when it has them all, and else is the
// unknown piece. Of two equal merges the first counts.
class Bpe final : public WordModel {
 public:
  using Merges = std::vector<std::pair<std::string, std::string>>;

  // pieces[id] is the text of a piece as it stands in words, empty for one that never does;
  // whole[id] says whether ignore_merges may choose it. LoadError when a merge does not name three
  // pieces.
  Bpe(const std::vector<std::string>& pieces, const std::vector<bool>& whole, const Merges& merges,
      const BytePieces& byte_pieces, const BpeOptions& options);

  void encode(std::string_view word, std::vector<Token>& out) const override;

 private:
  class Run;
  void encode_bytes(std::string_view word, std::vector<Token>& out) const;

  BpeOptions options_;
  ByteTrie whole_;
  CharacterTable characters_;
  std::vector<Symbol> single_;  // [256] of bytes
  PairFilter joins_;
  MergeTable merges_;
  BytePieces byte_pieces_;
};

// The two halves of a merge written in one line, "left right". LoadError, which names the entry,
// for a line without exactly one space inside.
std::pair<std::string, std::string> merge_of_line(std::string_view line, std::size_t entry);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "bpe.inl"
#endif
