#pragma once
// The steps of a tokenizer.json around its model: normalizers, pre-tokenizers, decoders.
#if defined(TENON_WITH_TEXT)
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "byte_alphabet.hpp"
#include "character_map.hpp"
#include "hugging_face_node.hpp"
#include "normalizers.hpp"
#include "pipeline.hpp"
#include "splits.hpp"

namespace tenon::inline TENON_ABI {
namespace detail {

// What the steps before the model do besides changing and cutting the text.
struct EncodingSteps {
  std::vector<TextStep> normalize;
  std::vector<SplitStep> split;
  bool bytes = false;                                 // words reach the model as bytes
  SpaceInFront space_in_front = SpaceInFront::never;  // what is put in front of a stretch
};

// {"String": text} or {"Regex": expression}.
inline Regex pattern_of(const HuggingFaceNode& node) {
  const HuggingFaceNode text = node["String"];
  return Regex(text.is_null() ? node["Regex"].text() : Regex::quoted(text.text()));
}

inline SplitBehavior behavior_of(const HuggingFaceNode& node, SplitBehavior fallback) {
  if (node.is_null()) return fallback;
  const std::string& name = node.text();
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  node.refuse(name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

inline PrependScheme scheme_of(const HuggingFaceNode& node) {
  const HuggingFaceNode scheme = node["prepend_scheme"];
  if (scheme.is_null())
    return node["add_prefix_space"].flag_or(true) ? PrependScheme::always : PrependScheme::never;
  if (scheme.text() == "always") return PrependScheme::always;
  if (scheme.text() == "first") return PrependScheme::first;
  if (scheme.text() == "never") return PrependScheme::never;
  scheme.refuse(scheme.text(), "always, first, never");
}

inline std::string mark_of(const HuggingFaceNode& node) {
  const std::string& mark = node["replacement"].text();
  if (mark.empty() || static_cast<std::size_t>(utf8_front(mark).length) != mark.size()) {
    node["replacement"].refuse(mark, "one character");
  }
  return mark;
}

inline void add_normalizer(const HuggingFaceNode& node, EncodingSteps& steps) {
  const std::string& type = node.type();
  const auto add = [&](TextStep step) { steps.normalize.push_back(std::move(step)); };
  if (type == "NFC") return add(to_normal_form(NormalForm::nfc));
  if (type == "NFD") return add(to_normal_form(NormalForm::nfd));
  if (type == "NFKC") return add(to_normal_form(NormalForm::nfkc));
  if (type == "NFKD") return add(to_normal_form(NormalForm::nfkd));
  if (type == "Lowercase") return add(to_lower_case());
  if (type == "Strip")
    return add(strip_ends(node["strip_left"].flag(), node["strip_right"].flag()));
  if (type == "StripAccents") return add(strip_marks());
  if (type == "Precompiled")
    return add(precompiled_normalizer(CharacterMap(from_base64(node["precompiled_charsmap"]))));
  if (type == "Prepend") {
    steps.space_in_front = SpaceInFront::of_every_stretch;
    return add(prepend_text(node["prepend"].text()));
  }
  if (type == "Replace") {
    const HuggingFaceNode text = node["pattern"]["String"];
    const std::string& with = node["content"].text();
    return text.is_null() ? add(replace_matches(pattern_of(node["pattern"]), with))
                          : add(replace_text(text.text(), with));
  }
  if (type == "BertNormalizer") {
    const bool lower = node["lowercase"].flag_or(true);
    return add(clean_for_bert({.clean = node["clean_text"].flag_or(true),
                               .chinese = node["handle_chinese_chars"].flag_or(true),
                               .strip_accents = node["strip_accents"].flag_or(lower),
                               .lower_case = lower}));
  }
  node.refuse(
      message("the normalizer \"", type, "\""),
      "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Precompiled, Prepend, Replace, "
      "BertNormalizer, Sequence");
}

inline void add_pre_tokenizer(const HuggingFaceNode& node, EncodingSteps& steps) {
  const std::string& type = node.type();
  const auto add = [&](SplitStep step) { steps.split.push_back(std::move(step)); };
  if (type == "Split") {
    return add(split_at(pattern_of(node["pattern"]),
                        behavior_of(node["behavior"], SplitBehavior::isolated),
                        node["invert"].flag_or(false)));
  }
  if (type == "Digits") return add(split_digits(node["individual_digits"].flag_or(false)));
  if (type == "Punctuation")
    return add(split_punctuation(behavior_of(node["behavior"], SplitBehavior::isolated)));
  if (type == "Whitespace") return add(split_words());
  if (type == "WhitespaceSplit") return add(split_white_space());
  if (type == "CharDelimiterSplit")
    return add(split_at(Regex(Regex::quoted(node["delimiter"].text())), SplitBehavior::removed));
  if (type == "BertPreTokenizer") {
    add(split_white_space());
    return add(split_punctuation(SplitBehavior::isolated));
  }
  if (type == "Metaspace") {
    const PrependScheme scheme = scheme_of(node);
    if (scheme == PrependScheme::first) steps.space_in_front = SpaceInFront::of_the_text;
    if (scheme == PrependScheme::always) steps.space_in_front = SpaceInFront::of_every_stretch;
    return add(metaspace(mark_of(node), scheme, node["split"].flag_or(true)));
  }
  if (type == "ByteLevel") {
    if (node["add_prefix_space"].flag_or(true)) add(space_in_front());
    if (node["use_regex"].flag_or(true))
      add(split_at(Regex(gpt2_expression), SplitBehavior::isolated));
    return;
  }
  node.refuse(message("the pre-tokenizer \"", type, "\""),
              "ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, "
              "CharDelimiterSplit, BertPreTokenizer, Sequence");
}

inline EncodingSteps encoding_steps(const HuggingFaceNode& root) {
  EncodingSteps steps;
  for (const HuggingFaceNode& node : steps_of(root["normalizer"], "normalizers"))
    add_normalizer(node, steps);
  // After "ByteLevel" a text is written in the byte alphabet, and further steps look at that.
  bool written = false;
  for (const HuggingFaceNode& node : steps_of(root["pre_tokenizer"], "pretokenizers")) {
    if (steps.bytes && node.type() == "ByteLevel") node.refuse("a second ByteLevel", "one");
    if (steps.bytes && !written) steps.split.push_back(to_byte_alphabet());
    written = steps.bytes;
    add_pre_tokenizer(node, steps);
    steps.bytes = steps.bytes || node.type() == "ByteLevel";
  }
  if (written) steps.split.push_back(from_byte_alphabet());
  return steps;
}

// How pieces become text.
struct DecodingSteps {
  std::vector<TextStep> pieces;  // what happens to each
  bool strips = false;           // a space at the start of the text goes
  bool byte_pieces = false;      // <0xHH> is a byte
  bool bytes = false;            // the result is bytes, not characters
};

inline void add_strip(const HuggingFaceNode& node, bool fused, DecodingSteps& steps) {
  const std::string content = node["content"].text();
  const std::int64_t start = node["start"].integer(), stop = node["stop"].integer();
  if (fused) {
    if (stop != 0 || start > 1 || content != " ")
      node.refuse("a strip of the whole text", "one space at its start");
    steps.strips = steps.strips || start == 1;
    return;
  }
  steps.pieces.push_back([content, start, stop](std::string& piece) {
    if (content.empty()) return;
    for (std::int64_t i = 0; i < start && piece.compare(0, content.size(), content) == 0; ++i)
      piece.erase(0, content.size());
    for (std::int64_t i = 0;
         i < stop && piece.size() >= content.size() &&
         piece.compare(piece.size() - content.size(), content.size(), content) == 0;
         ++i)
      piece.resize(piece.size() - content.size());
  });
}

// "##ing" goes on, "in" starts a word; the blanks that this puts before marks and contractions go.
inline TextStep wordpiece_spelling(std::string prefix, bool clean_up) {
  return [prefix = std::move(prefix), clean_up](std::string& piece) {
    if (!prefix.empty() && piece.compare(0, prefix.size(), prefix) == 0) {
      piece.erase(0, prefix.size());
    } else {
      piece.insert(0, " ");
    }
    if (!clean_up) return;
    constexpr std::string_view tight[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : tight) replace_text(std::string(from), std::string(to))(piece);
  };
}

inline DecodingSteps decoding_steps(const HuggingFaceNode& root) {
  DecodingSteps steps;
  bool fused = false;
  const std::vector<HuggingFaceNode> nodes = steps_of(root["decoder"], "decoders");
  for (const HuggingFaceNode& node : nodes) {
    const std::string& type = node.type();
    if (type == "Fuse") {
      fused = true;
    } else if (type == "ByteFallback") {
      steps.byte_pieces = true;
    } else if (type == "Strip") {
      add_strip(node, fused, steps);
    } else if (type == "Replace") {
      const HuggingFaceNode text = node["pattern"]["String"];
      const bool single =
          !text.is_null() &&
          static_cast<std::size_t>(utf8_front(text.text()).length) == text.text().size();
      if (fused && !single)
        node.refuse("a replacement in the whole text", "one of a single character");
      steps.pieces.push_back(
          text.is_null() ? replace_matches(pattern_of(node["pattern"]), node["content"].text())
                         : replace_text(text.text(), node["content"].text()));
    } else if (type == "Metaspace") {
      steps.pieces.push_back(replace_text(mark_of(node), " "));
      steps.strips = steps.strips || scheme_of(node) != PrependScheme::never;
    } else if (type == "ByteLevel") {
      steps.bytes = true;
      steps.pieces.push_back(
          [](std::string& piece) { piece = ByteAlphabet::bytes(piece).value_or(piece); });
    } else if (type == "WordPiece") {
      steps.strips = true;
      steps.pieces.push_back(
          wordpiece_spelling(node["prefix"].text(), node["cleanup"].flag_or(true)));
    } else {
      node.refuse(message("the decoder \"", type, "\""),
                  "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, WordPiece, Sequence");
    }
  }
  if (nodes.empty()) {  // pieces are words
    steps.strips = true;
    steps.pieces.push_back([](std::string& piece) { piece.insert(0, " "); });
  }
  return steps;
}

}  // namespace detail
}  // namespace tenon::inline TENON_ABI
#endif
