#pragma once
#include "escaped_bytes.hpp"
#include "pipeline.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::string Pipeline::normalized(std::string text) const {
  for (const TextStep& step : steps_.normalize) step(text);
  return text;
}

TENON_INLINE void Pipeline::encode(const Stretch& stretch, WordCache& cache,
                                   std::vector<Token>& out) const {
  if (stretch.text.empty()) return;
  std::string changed;
  std::string_view text = stretch.text;
  const bool escaped = !is_utf8(text);
  if (escaped) text = changed = escape_bytes(text);
  if (!steps_.normalize.empty()) text = changed = normalized(std::string(text));
  std::size_t at = 0;
  bool first = stretch.first;
  for (const SpecialMatcher::Match& match : specials_.find(text, stretch.parse_special)) {
    encode_words(text.substr(at, match.at - at), first, escaped, cache, out);
    out.push_back(match.id);
    at = match.at + match.size;
    first = false;
  }
  encode_words(text.substr(at), first, escaped, cache, out);
}

TENON_INLINE void Pipeline::encode_words(std::string_view text, bool first, bool escaped,
                                         WordCache& cache, std::vector<Token>& out) const {
  if (text.empty()) return;
  Pretokens tokens(text, first);
  for (const SplitStep& step : steps_.split) step(tokens);
  for (const TextRange& range : tokens.ranges) {
    const std::string_view word = tokens.word(range);
    if (escaped && !tokens.raw) {
      encode_word(unescape_bytes(word), cache, out);
    } else {
      encode_word(word, cache, out);
    }
  }
}

TENON_INLINE void Pipeline::encode_word(std::string_view word, WordCache& cache,
                                        std::vector<Token>& out) const {
  if (!steps_.caches || word.size() > WordCache::longest_word) {
    steps_.model->encode(word, out);
    return;
  }
  if (cache.find(word, out)) return;
  const std::size_t from = out.size();
  steps_.model->encode(word, out);
  cache.insert(word, out, from);
}

}  // namespace tenon::inline TENON_ABI
