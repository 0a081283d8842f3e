#pragma once
// A text on its way to the words that a model encodes one by one, and the steps that cut it.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "regex.hpp"

namespace tenon::inline TENON_ABI {

// UTF-8 but for escaped bytes (escaped_bytes.hpp).
struct Pretokens {
  std::string_view text;
  std::vector<TextRange> ranges;  // the words, in order, not empty, without overlaps
  bool first = false;             // the text starts where the whole text does
  bool raw = false;               // the bytes themselves, without escapes
  std::string storage;            // what `text` shows once a step has changed it

  Pretokens(std::string_view whole, bool is_first) : text(whole), first(is_first) {
    if (!whole.empty()) ranges.push_back({0, whole.size()});
  }
  Pretokens(const Pretokens&) = delete;
  Pretokens& operator=(const Pretokens&) = delete;

  std::string_view word(const TextRange& range) const {
    return text.substr(range.begin, range.end - range.begin);
  }
  void replace(std::string changed, std::vector<TextRange> words) {
    storage = std::move(changed);
    text = storage;
    ranges = std::move(words);
  }
};

// Changes a text before it is cut (a "normalizer"), or cuts it further (a "pre-tokenizer").
using TextStep = std::function<void(std::string&)>;
using SplitStep = std::function<void(Pretokens&)>;

}  // namespace tenon::inline TENON_ABI
