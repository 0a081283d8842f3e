#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "../core/utf8.hpp"
#include "unigram.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE Unigram::Unigram(const std::vector<std::string>& pieces,
                              const std::vector<double>& scores, Token unknown,
                              const BytePieces& byte_pieces, bool single)
    : scores_(scores), unknown_(unknown), byte_pieces_(byte_pieces), single_(single) {
  constexpr std::size_t longest = 1024;
  spells_ = std::all_of(byte_pieces.begin(), byte_pieces.end(), [](Token id) { return id >= 0; });
  if (unknown < 0 && !spells_) {
    fail<LoadError>(
        "a unigram vocabulary must have an unknown piece or all 256 byte pieces, this one has ",
        "neither; convert the checkpoint again with a current converter");
  }
  if (scores.size() != pieces.size()) {
    fail<LoadError>("a unigram vocabulary must have a score for each of its ", pieces.size(),
                    " pieces, it has ", scores.size(),
                    "; convert the checkpoint again with a current converter");
  }
  std::vector<ByteTrie::Entry> entries;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].empty()) continue;
    if (!std::isfinite(scores[id]) || pieces[id].size() > longest) {
      fail<LoadError>("piece ", id,
                      " of a unigram vocabulary must have a finite score and at most ", longest,
                      " bytes, it has the score ", scores[id], " and ", pieces[id].size(),
                      " bytes; the file is damaged or hostile");
    }
    lowest = (std::min)(lowest, scores[id]);
    entries.emplace_back(pieces[id], static_cast<Token>(id));
  }
  if (entries.empty()) lowest = 0;
  unknown_score_ = lowest - 10;
  trie_ = ByteTrie(std::move(entries));
}

TENON_INLINE void Unigram::encode(std::string_view word, std::vector<Token>& out) const {
  if (single_) {
    encode_as<float>(word, out);
  } else {
    encode_as<double>(word, out);
  }
}

// Viterbi: best[end] is the best way to spell the bytes before `end`.
template <class Number>
void Unigram::encode_as(std::string_view word, std::vector<Token>& out) const {
  struct Best {
    Number score = 0;
    std::uint32_t size = 0;  // bytes of the last piece; 0: not reached
    Token id = -1;           // -1: characters that are no piece
  };
  std::vector<Best> best(word.size() + 1);
  const auto offer = [&](std::size_t end, Number score, std::size_t size, Token id) {
    Best& at = best[end];
    if (at.size == 0 || score > at.score) at = {score, static_cast<std::uint32_t>(size), id};
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const int length = utf8_front(word.substr(begin)).length;
    const auto character = static_cast<std::size_t>(length > 0 ? length : 1);
    const Number so_far = best[begin].score;
    bool alone = false;
    ByteTrie::Node node = ByteTrie::root;
    for (std::size_t end = begin; end < word.size();) {
      node = trie_.step(node, static_cast<unsigned char>(word[end++]));
      if (node == ByteTrie::nowhere) break;
      const Token id = trie_.value(node);
      if (id == ByteTrie::none) continue;
      offer(end, so_far + static_cast<Number>(scores_[static_cast<std::size_t>(id)]), end - begin,
            id);
      alone = alone || end - begin == character;
    }
    if (!alone)
      offer(begin + character, so_far + static_cast<Number>(unknown_score_), character, -1);
    begin += character;
  }
  // Pieces may end inside a character; from there no way leads on, and none is followed back.
  std::vector<std::size_t> ends;
  for (std::size_t end = word.size(); end > 0; end -= best[end].size) ends.push_back(end);
  bool after_unknown = false;
  for (std::size_t i = ends.size(); i-- > 0;) {
    const Best& piece = best[ends[i]];
    if (piece.id >= 0) {
      out.push_back(piece.id);
      after_unknown = false;
      continue;
    }
    const std::string_view text = word.substr(ends[i] - piece.size, piece.size);
    if (spells_) {
      for (const char c : text) out.push_back(byte_pieces_[static_cast<unsigned char>(c)]);
      continue;
    }
    if (!after_unknown) out.push_back(unknown_);
    after_unknown = true;
  }
}

}  // namespace tenon::inline TENON_ABI
