#pragma once
// WordPiece: from the left, always the longest piece that fits. Source: Schuster and Nakajima 2012;
// the BERT code.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/utf8.hpp"
#include "byte_trie.hpp"
#include "word_model.hpp"

namespace tenon::inline TENON_ABI {

// A word that cannot be spelled, or has more than `most_characters`, is one unknown piece.
class WordPiece final : public WordModel {
 public:
  // `heads` are the pieces that start words, `tails` those that go on, with their ids.
  WordPiece(std::vector<ByteTrie::Entry> heads, std::vector<ByteTrie::Entry> tails, Token unknown,
            std::size_t most_characters)
      : heads_(std::move(heads)),
        tails_(std::move(tails)),
        unknown_(unknown),
        most_(most_characters) {}

  void encode(std::string_view word, std::vector<Token>& out) const override {
    const std::size_t size = out.size();
    std::size_t characters = 0;
    for (const char c : word) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    std::size_t at = characters > most_ ? word.size() : 0;
    bool spelled = characters <= most_;
    while (at < word.size() && spelled) {
      const ByteTrie& trie = at == 0 ? heads_ : tails_;
      ByteTrie::Node node = ByteTrie::root;
      std::size_t end = at;
      Token id = ByteTrie::none;
      for (std::size_t i = at; i < word.size();) {
        node = trie.step(node, static_cast<unsigned char>(word[i++]));
        if (node == ByteTrie::nowhere) break;
        const bool inside = i < word.size() && (static_cast<unsigned char>(word[i]) & 0xC0) == 0x80;
        if (trie.value(node) == ByteTrie::none || inside) continue;
        id = trie.value(node);
        end = i;
      }
      spelled = id != ByteTrie::none;
      if (spelled) out.push_back(id);
      at = end;
    }
    if (spelled) return;
    out.resize(size);
    out.push_back(unknown_);
  }

 private:
  ByteTrie heads_, tails_;
  Token unknown_;
  std::size_t most_;
};

}  // namespace tenon::inline TENON_ABI
