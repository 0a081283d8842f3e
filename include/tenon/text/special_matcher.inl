#pragma once
#include "special_matcher.hpp"

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
  std::size_t end = 0;
  for (std::size_t i = starts.size(); i-- > 0;) {
    if (starts[i].at < end) continue;
    matches.push_back(starts[i]);
    end = starts[i].at + starts[i].size;
  }
  return matches;
}

}  // namespace tenon::inline TENON_ABI
