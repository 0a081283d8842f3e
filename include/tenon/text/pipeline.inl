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
  const Sink sink{escaped, cache, out};
  std::size_t at = 0;
  bool first = stretch.first;
  for (const SpecialMatcher::Match& match : specials_.find(text, stretch.parse_special)) {
    encode_words(text.substr(at, match.at - at), first, 0, sink);
    out.push_back(match.id);
    at = match.at + match.size;
    first = false;
  }
  encode_words(text.substr(at), first, 0, sink);
}

TENON_INLINE void Pipeline::encode_words(std::string_view text, bool first, std::size_t stage,
                                         const Sink& sink) const {
  constexpr std::size_t short_words = 12;  // bytes, on average
  const std::size_t begin = stage;
  Pretokens tokens(text, first);
  for (; stage < steps_.split.size(); ++stage) {
    if (stage > begin && text.size() > short_words &&
        tokens.ranges.size() * short_words >= tokens.text.size())
      break;
    steps_.split[stage](tokens);
  }
  for (const TextRange& range : tokens.ranges) {
    const std::string_view word = tokens.word(range);
    if (stage == steps_.split.size() && sink.escaped && !tokens.raw) {
      encode_word(unescape_bytes(word), false, stage, sink);
    } else {
      encode_word(word, first && range.begin == 0, stage, sink);
    }
  }
}

TENON_INLINE void Pipeline::encode_word(std::string_view word, bool first, std::size_t stage,
                                        const Sink& sink) const {
  const bool last = stage == steps_.split.size();
  const auto encode = [&] {
    if (last) {
      steps_.model->encode(word, sink.out);
    } else {
      encode_words(word, first, stage, sink);
    }
  };
  if (!steps_.caches || word.size() > WordCache::longest_word || (first && !last)) {
    encode();
    return;
  }
  if (sink.cache.find(word, stage, sink.out)) return;
  const std::size_t from = sink.out.size();
  encode();
  // Encoding a word in steps has asked for its parts meanwhile.
  sink.cache.insert(word, stage, sink.out, from);
}

}  // namespace tenon::inline TENON_ABI
