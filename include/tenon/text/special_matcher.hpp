#pragma once
// Finds the pieces that are kept whole in a text before any merging.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "automaton.hpp"
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

// How a special piece takes in what lies around it, as the "added_tokens" of a tokenizer.json say.
struct AddedRule {
  bool left_strip = false, right_strip = false;  // the white space beside it belongs to it
  bool single_word = false;                      // it counts only where no word goes on beside it
  bool normalized = false;                       // it is looked for in the normalized text
};
using AddedRules = std::unordered_map<Token, AddedRule>;

// User-defined pieces occur in every text. Control pieces and the unknown piece occur only where
// the caller parses them, so that plain text can never become a control id.
class SpecialMatcher {
 public:
  struct Match {
    std::size_t at = 0;  // first byte in the text
    std::size_t size = 0;
    Token id = 0;
  };

  SpecialMatcher() = default;
  // spelling(id) is the text of a piece as it stands in a prompt, empty for one that is not to be
  // found. LoadError when the pieces are of a size that no real file has; searching takes some 40
  // bytes of memory for each of theirs.
  template <class Spelling>
  SpecialMatcher(const Vocabulary& vocabulary, Spelling spelling, AddedRules rules = {})
      : rules_(std::move(rules)) {
    // Patterns are entered backwards: see find(). Where two kinds share a text, user-defined wins.
    std::string reversed;
    std::size_t bytes = 0;
    for (const bool user : {false, true}) {
      for (Token id = 0; id < vocabulary.size(); ++id) {
        const TokenKind kind = vocabulary.kind(id);
        const bool marks = kind == TokenKind::control || kind == TokenKind::unknown;
        if (user ? kind != TokenKind::user_defined : !marks) continue;
        const std::string_view text = spelling(id);
        bytes += text.size();
        if (bytes > most_bytes) {
          fail<LoadError>("the control and user-defined pieces must have at most ", most_bytes,
                          " bytes together, token ", id,
                          " exceeds that; the file is damaged or hostile");
        }
        reversed.assign(text.rbegin(), text.rend());
        any_ = any_ || !text.empty();
        any_user_ = any_user_ || (user && !text.empty());
        automaton_.add(reversed, id);
      }
    }
    automaton_.build();
    all_ = automaton_.longest([](Token) { return true; });
    user_ = automaton_.longest(
        [&](Token id) { return vocabulary.kind(id) == TokenKind::user_defined; });
    sizes_.resize(static_cast<std::size_t>(vocabulary.size()));
    for (Token id = 0; id < vocabulary.size(); ++id) {
      sizes_[static_cast<std::size_t>(id)] = spelling(id).size();
    }
  }

  // The matches in order, without overlaps: at each place, from left to right, the longest piece
  // that starts there. O(text) whatever the pieces are: read backwards, the automaton tells at
  // every byte the longest piece that starts with it.
  std::vector<Match> find(std::string_view text, bool parse_special) const;

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 23;

  // Takes in the white space beside a match, from `from` on; false when the match does not count.
  bool apply_rule(std::string_view text, std::size_t from, Match& match) const;

  Automaton automaton_;
  std::vector<Token> all_, user_;  // by state: the piece that starts here
  std::vector<std::size_t> sizes_;
  AddedRules rules_;
  bool any_ = false, any_user_ = false;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "special_matcher.inl"
#endif
