#pragma once
#include <cstddef>
#include <utility>

#include "byte_alphabet.hpp"
#include "escaped_bytes.hpp"
#include "splits.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

struct SplitPart {
  TextRange range;
  bool match = false;
};

// The matches of a word and what lies between, in order.
inline void find_parts(Regex::Matcher& matcher, std::string_view word, bool invert,
                       std::vector<SplitPart>& parts) {
  parts.clear();
  std::size_t done = 0, from = 0;
  for (TextRange match; from <= word.size() && matcher.find(word, from, match);) {
    if (match.begin > done) parts.push_back({{done, match.begin}, invert});
    if (match.end > match.begin) parts.push_back({match, !invert});
    done = match.end;
    from = match.end;
    if (match.end > match.begin) continue;
    // An empty match cuts; the next one starts a character later.
    if (from == word.size()) break;
    from += static_cast<std::size_t>(escaped_char(word, from).length);
  }
  if (done < word.size()) parts.push_back({{done, word.size()}, invert});
}

inline void keep_parts(const std::vector<SplitPart>& parts, SplitBehavior behavior,
                       std::size_t offset, std::vector<TextRange>& out) {
  const auto add = [&](const TextRange& range) {
    out.push_back({offset + range.begin, offset + range.end});
  };
  const std::size_t first = out.size();
  switch (behavior) {
    case SplitBehavior::isolated:
      for (const SplitPart& part : parts) add(part.range);
      return;
    case SplitBehavior::removed:
      for (const SplitPart& part : parts) {
        if (!part.match) add(part.range);
      }
      return;
    case SplitBehavior::contiguous:
    case SplitBehavior::merged_with_previous: {
      bool last = false;
      for (const SplitPart& part : parts) {
        const bool joins =
            behavior == SplitBehavior::contiguous ? part.match == last : part.match && !last;
        if (joins && out.size() > first) {
          out.back().end = offset + part.range.end;
        } else {
          add(part.range);
        }
        last = part.match;
      }
      return;
    }
    case SplitBehavior::merged_with_next: {
      // A match joins what follows it; of matches in a row only the last does.
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool joined = i > 0 && parts[i - 1].match && !parts[i].match;
        if (joined) {
          out.back().end = offset + parts[i].range.end;
        } else {
          add(parts[i].range);
        }
      }
      return;
    }
  }
}

template <class Change>
SplitStep rewrite(Change change) {
  return [change](Pretokens& tokens) {
    std::string text;
    text.reserve(tokens.text.size() + tokens.text.size() / 4);
    std::vector<TextRange> ranges;
    for (const TextRange& range : tokens.ranges) {
      const std::size_t begin = text.size();
      change(tokens, range, text, ranges);
      if (ranges.empty() || ranges.back().end < text.size()) ranges.push_back({begin, text.size()});
    }
    tokens.replace(std::move(text), std::move(ranges));
  };
}

}  // namespace detail

TENON_INLINE SplitStep split_at(Regex regex, SplitBehavior behavior, bool invert) {
  return [regex = std::move(regex), behavior, invert](Pretokens& tokens) {
    Regex::Matcher matcher(regex);
    std::vector<TextRange> ranges;
    ranges.reserve(tokens.text.size() / 4 + tokens.ranges.size());
    std::vector<detail::SplitPart> parts;
    for (const TextRange& range : tokens.ranges) {
      detail::find_parts(matcher, tokens.word(range), invert, parts);
      detail::keep_parts(parts, behavior, range.begin, ranges);
    }
    tokens.ranges = std::move(ranges);
  };
}

TENON_INLINE SplitStep split_words() {
  constexpr std::string_view word = R"(\w\x{200C}\x{200D})";  // with the two joiners
  return split_at(Regex(message("[", word, "]+|[^", word, "\\s]+")), SplitBehavior::removed, true);
}

TENON_INLINE SplitStep split_white_space() {
  return split_at(Regex(R"(\s)"), SplitBehavior::removed);
}

TENON_INLINE SplitStep split_punctuation(SplitBehavior behavior) {
  return split_at(Regex(R"([\p{P}$+<=>\^`|~])"), behavior);
}

TENON_INLINE SplitStep split_digits(bool individual) {
  return split_at(Regex(individual ? R"(\p{N})" : R"(\p{N}+)"), SplitBehavior::isolated);
}

TENON_INLINE SplitStep space_in_front() {
  return detail::rewrite(
      [](const Pretokens& tokens, const TextRange& range, std::string& text, auto&) {
        const std::string_view word = tokens.word(range);
        if (word[0] != ' ') text += ' ';
        text += word;
      });
}

TENON_INLINE SplitStep to_byte_alphabet() {
  return detail::rewrite(
      [](const Pretokens& tokens, const TextRange& range, std::string& text, auto&) {
        text += ByteAlphabet::write(unescape_bytes(tokens.word(range)));
      });
}

TENON_INLINE SplitStep from_byte_alphabet() {
  const SplitStep step = detail::rewrite(
      [](const Pretokens& tokens, const TextRange& range, std::string& text, auto&) {
        const std::string_view word = tokens.word(range);
        text += ByteAlphabet::bytes(word).value_or(std::string(word));
      });
  return [step](Pretokens& tokens) {
    step(tokens);
    tokens.raw = true;
  };
}

TENON_INLINE SplitStep metaspace(std::string mark, PrependScheme prepend, bool cut) {
  return detail::rewrite(
      [mark = std::move(mark), prepend, cut](const Pretokens& tokens, const TextRange& range,
                                             std::string& text, std::vector<TextRange>& ranges) {
        const std::string_view word = tokens.word(range);
        const bool marked = word[0] == ' ' || word.substr(0, mark.size()) == mark;
        const bool wanted = prepend == PrependScheme::always ||
                            (prepend == PrependScheme::first && tokens.first && range.begin == 0);
        std::size_t begin = text.size();
        if (wanted && !marked) text += mark;
        for (std::size_t at = 0; at < word.size();) {
          const bool space = word[at] == ' ';
          const bool here = space || word.substr(at, mark.size()) == mark;
          if (here && cut && text.size() > begin) {
            ranges.push_back({begin, text.size()});
            begin = text.size();
          }
          if (here) {
            text += mark;
            at += space ? 1 : mark.size();
          } else {
            text += word[at++];
          }
        }
        ranges.push_back({begin, text.size()});
      });
}

}  // namespace tenon::inline TENON_ABI
