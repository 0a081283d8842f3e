#pragma once
// What the readers of each kind of tokenizer file hand to the common frame.
#include <memory>
#include <utility>
#include <vector>

#include "algorithm.hpp"
#include "special_matcher.hpp"
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

struct LoadedTokenizer {
  Vocabulary vocabulary;
  std::unique_ptr<const TextAlgorithm> algorithm;
  AddedRules rules;                  // how special pieces take in what lies around them
  std::vector<Token> before, after;  // ids around a text, unless the caller says otherwise
};

}  // namespace tenon::inline TENON_ABI
