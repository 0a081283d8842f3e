#pragma once
#include <algorithm>

#include "special_matcher.hpp"
#include "unicode.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::vector<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text,
                                                                     bool parse_special) const {
  std::vector<Match> starts;
  if (!(parse_special ? any_ : any_user_)) return starts;
  const std::vector<Token>& longest = parse_special ? all_ : user_;
  Automaton::State state = Automaton::start;
  for (std::size_t at = text.size(); at-- > 0;) {
    state = automaton_.step(state, static_cast<unsigned char>(text[at]));
    if (state == Automaton::start || longest[state] == Automaton::none) continue;
    const Token id = longest[state];
    starts.push_back({at, sizes_[static_cast<std::size_t>(id)], id});
  }
  std::vector<Match> matches;
  std::size_t end = 0, taken = 0;  // where the last match ends, itself and with what it took in
  for (std::size_t i = starts.size(); i-- > 0;) {
    Match match = starts[i];
    if (match.at < (std::max)(end, taken)) continue;
    end = match.at + match.size;
    if (!rules_.empty() && !apply_rule(text, taken, match)) continue;
    taken = match.at + match.size;
    matches.push_back(match);
  }
  return matches;
}

TENON_INLINE bool SpecialMatcher::apply_rule(std::string_view text, std::size_t from,
                                             Match& match) const {
  const auto found = rules_.find(match.id);
  if (found == rules_.end()) return true;
  const AddedRule& rule = found->second;
  // The start of the character before `at`.
  const auto before = [&](std::size_t at) {
    std::size_t start = at - 1;
    while (start > 0 && at - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    return start;
  };
  const auto character = [&](std::size_t at) { return utf8_front(text.substr(at)); };
  std::size_t begin = match.at, end = match.at + match.size;
  if (rule.single_word) {
    if (begin > 0 && is_word_character(character(before(begin)).code)) return false;
    if (end < text.size() && is_word_character(character(end).code)) return false;
  }
  while (rule.left_strip && begin > from) {
    const std::size_t start = before(begin);
    const Utf8Char c = character(start);
    if (start < from || c.length == 0 || !is_white_space(c.code)) break;
    begin = start;
  }
  while (rule.right_strip && end < text.size()) {
    const Utf8Char c = character(end);
    if (c.length == 0 || !is_white_space(c.code)) break;
    end += static_cast<std::size_t>(c.length);
  }
  match.at = begin;
  match.size = end - begin;
  return true;
}

}  // namespace tenon::inline TENON_ABI
