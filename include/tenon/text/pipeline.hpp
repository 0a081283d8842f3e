#pragma once
// The steps from a text to ids: normalize, look for special pieces again, cut into words, encode
// each word.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithm.hpp"
#include "pretokens.hpp"
#include "special_matcher.hpp"
#include "word_model.hpp"

namespace tenon::inline TENON_ABI {

// The parts of a pipeline, which readers of tokenizer files fill.
struct PipelineSteps {
  std::vector<TextStep> normalize;
  std::vector<SplitStep> split;
  std::unique_ptr<const WordModel> model;
  std::function<std::string(const Vocabulary&, Token)> spell;
  SpaceInFront space_in_front = SpaceInFront::never;
  bool caches = true;  // words repeat: there is a step that cuts
};

// Bytes that are not UTF-8 go through the steps as escapes (escaped_bytes.hpp) and reach the model
// as themselves.
class Pipeline final : public TextAlgorithm {
 public:
  explicit Pipeline(PipelineSteps steps) : steps_(std::move(steps)) {}
  // The special pieces that are looked for in the normalized text.
  void find_in_normalized(SpecialMatcher matcher) { specials_ = std::move(matcher); }
  // A text as the steps before cutting leave it.
  std::string normalized(std::string text) const;

  void encode(const Stretch& stretch, WordCache& cache, std::vector<Token>& out) const override;
  std::string spell(const Vocabulary& vocabulary, Token id) const override {
    return steps_.spell(vocabulary, id);
  }
  SpaceInFront space_in_front() const override { return steps_.space_in_front; }

 private:
  // Where the words of one stretch go.
  struct Sink {
    bool escaped;
    WordCache& cache;
    std::vector<Token>& out;
  };
  // Takes the steps from `stage` on. What they make of a word depends on nothing around it (but for
  // `first`), so once words are short the rest is done word by word, and remembered.
  void encode_words(std::string_view text, bool first, std::size_t stage, const Sink& sink) const;
  void encode_word(std::string_view word, bool first, std::size_t stage, const Sink& sink) const;

  PipelineSteps steps_;
  SpecialMatcher specials_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "pipeline.inl"
#endif
