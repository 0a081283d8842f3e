#pragma once
#include "gguf_tokenizer.hpp"
#include "hugging_face_tokenizer.hpp"
#include "sentencepiece_model.hpp"
#include "tokenizer.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE Tokenizer Tokenizer::from(const Metadata& metadata) {
  LoadedTokenizer loaded = load(metadata);
  auto parts = std::make_shared<Parts>();
  parts->vocabulary = std::move(loaded.vocabulary);
  parts->algorithm = std::move(loaded.algorithm);
  parts->before = std::move(loaded.before);
  parts->after = std::move(loaded.after);
  const Vocabulary& vocabulary = parts->vocabulary;
  parts->starts.reserve(static_cast<std::size_t>(vocabulary.size()) + 1);
  for (Token id = 0; id < vocabulary.size(); ++id) {
    parts->starts.push_back(parts->spelling.size());
    parts->spelling += parts->algorithm->spell(vocabulary, id);
  }
  parts->starts.push_back(parts->spelling.size());
  const auto spelling = [&](Token id) {
    const auto rule = loaded.rules.find(id);
    const bool elsewhere = rule != loaded.rules.end() && rule->second.normalized;
    return elsewhere ? std::string_view() : parts->spell(id);
  };
  parts->specials = SpecialMatcher(vocabulary, spelling, loaded.rules);
  parts->rules = std::move(loaded.rules);
  Tokenizer tokenizer;
  tokenizer.ends_ = vocabulary.ends();
  tokenizer.parts_ = std::move(parts);
  return tokenizer;
}

TENON_INLINE LoadedTokenizer Tokenizer::load(const Metadata& metadata) {
  if (metadata.contains("tokenizer.ggml.model")) return load_gguf_tokenizer(metadata);
  if (metadata.contains("tokenizer.huggingface.json")) return load_hugging_face_tokenizer(metadata);
  if (metadata.contains("tokenizer.sentencepiece.model"))
    return load_sentencepiece_tokenizer(metadata);
  fail<LoadError>(
      "the checkpoint must have a tokenizer: a folder the file tokenizer.json or tokenizer.model, "
      "a "
      ".gguf file the metadata key \"tokenizer.ggml.model\"; none is there; copy the files of the "
      "original model into the folder, or convert it with them");
}

namespace detail {
// Whether one of the ranges, which are in order, holds one of the bytes [from, to).
inline bool touches(std::span<const PlainRange> ranges, std::size_t from, std::size_t to) {
  const auto range =
      std::upper_bound(ranges.begin(), ranges.end(), from,
                       [](std::size_t place, const PlainRange& r) { return place < r.to; });
  return range != ranges.end() && range->from < to;
}
}  // namespace detail

TENON_INLINE std::vector<Token> Tokenizer::encode(std::string_view text,
                                                  EncodeOptions options) const {
  if (text.size() > most_bytes) {
    fail<TokenizerError>("a text must have at most ", most_bytes,
                         " bytes to be encoded in one call, this one has ", text.size(),
                         "; encode it in parts");
  }
  std::vector<Token> ids;
  ids.reserve(text.size() / 4 + 3);
  add_around(options.bos, parts_->before, bos(), "start", "bos", ids);
  std::size_t at = 0;
  WordCache cache;
  Stretch stretch{{}, true, options.parse_special};
  // A stretch that holds text of users is all plain to the algorithm, which may change it before it
  // looks for pieces of its own and so cannot tell whose bytes are whose.
  const auto encode_stretch = [&](std::size_t from, std::size_t to) {
    stretch.text = text.substr(from, to - from);
    stretch.parse_special = options.parse_special && !detail::touches(options.plain, from, to);
    parts_->algorithm->encode(stretch, cache, ids);
    stretch.first = false;
  };
  for (const SpecialMatcher::Match& match : find_special(text, options)) {
    encode_stretch(at, match.at);
    ids.push_back(match.id);
    at = match.at + match.size;
  }
  encode_stretch(at, text.size());
  add_around(options.eos, parts_->after, eos(), "end", "eos", ids);
  return ids;
}

// Control pieces are looked for between the plain ranges only, each stretch as if it stood alone: a
// user's text right behind a piece can neither lengthen nor suppress it. User-defined pieces are
// then looked for in all that is left; one that ends texts (some files call such pieces so) is no
// piece where a user's text touches it.
TENON_INLINE std::vector<SpecialMatcher::Match> Tokenizer::find_special(
    std::string_view text, const EncodeOptions& options) const {
  using Match = SpecialMatcher::Match;
  if (!options.parse_special || options.plain.empty())
    return parts_->specials.find(text, options.parse_special);
  std::vector<Match> control, matches;
  const auto add = [&](std::size_t from, std::size_t to, bool parse, std::vector<Match>& found) {
    if (from >= to) return;
    for (Match match : parts_->specials.find(text.substr(from, to - from), parse)) {
      match.at += from;
      const bool wanted = parse ? kind(match.id) != TokenKind::user_defined
                                : !is_end(match.id) || !detail::touches(options.plain, match.at,
                                                                        match.at + match.size);
      if (wanted) found.push_back(match);
    }
  };
  std::size_t at = 0;
  for (const PlainRange& range : options.plain) {
    if (range.from < at || range.to < range.from || range.to > text.size()) {
      fail<TokenizerError>(
          "EncodeOptions::plain must be ranges of the text in order and apart, one is ", range.from,
          " to ", range.to, " in a text of ", text.size(), " bytes; correct it");
    }
    add(at, range.from, true, control);
    at = range.to;
  }
  add(at, text.size(), true, control);
  at = 0;
  for (const Match& match : control) {
    add(at, match.at, false, matches);
    matches.push_back(match);
    at = match.at + match.size;
  }
  add(at, text.size(), false, matches);
  return matches;
}

TENON_INLINE std::string Tokenizer::decode(std::span<const Token> ids,
                                           DecodeOptions options) const {
  std::string text;
  DecodeState state;
  for (const Token id : ids) append(id, state, text, options);
  return text;
}

TENON_INLINE void Tokenizer::append(Token id, DecodeState& state, std::string& text,
                                    DecodeOptions options) const {
  check(id);
  std::string_view spelling = parts_->spell(id);
  const TokenKind kind = parts_->vocabulary.kind(id);
  const SpaceInFront space = parts_->algorithm->space_in_front();
  const bool every = space == SpaceInFront::of_every_stretch;
  if (kind == TokenKind::control || kind == TokenKind::unknown) {
    if (!options.special) return;
    text += spelling;
    // An unknown piece that stands for characters is part of its stretch. A vocabulary that
    // spells every byte has no use for it, so there it can only be one that was parsed.
    state.starts = every && (kind == TokenKind::control || parts_->vocabulary.spells_every_byte());
    return;
  }
  if (kind == TokenKind::user_defined) {
    text += spelling;
    const auto rule = parts_->rules.find(id);
    state.starts = every && (rule == parts_->rules.end() || !rule->second.normalized);
    return;
  }
  if (spelling.empty()) return;
  if (state.starts && space != SpaceInFront::never && spelling[0] == ' ') spelling.remove_prefix(1);
  text += spelling;
  state.starts = false;
}

TENON_INLINE std::string_view Tokenizer::piece(Token id) const {
  check(id);
  return parts_->vocabulary.piece(id);
}

TENON_INLINE TokenKind Tokenizer::kind(Token id) const {
  check(id);
  return parts_->vocabulary.kind(id);
}

TENON_INLINE std::string Tokenizer::bytes_of(Token id) const {
  std::string text;
  DecodeState inside{false};
  append(id, inside, text);
  return text;
}

TENON_INLINE std::optional<Token> Tokenizer::find(std::string_view piece) const {
  for (Token id = 0; id < vocab(); ++id) {
    if (parts_->vocabulary.piece(id) == piece) return id;
  }
  return std::nullopt;
}

TENON_INLINE Tokenizer Tokenizer::with_ends(std::span<const Token> more) const {
  Tokenizer tokenizer = *this;
  for (const Token id : more) {
    check(id);
    if (!is_end(id)) tokenizer.ends_.push_back(id);
  }
  return tokenizer;
}

TENON_INLINE std::string_view Tokenizer::Parts::spell(Token id) const {
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(spelling).substr(starts[i], starts[i + 1] - starts[i]);
}

TENON_INLINE void Tokenizer::add_around(std::optional<bool> asked,
                                        const std::vector<Token>& declared, std::optional<Token> id,
                                        std::string_view role, std::string_view option,
                                        std::vector<Token>& ids) {
  if (!asked.value_or(true)) return;
  ids.insert(ids.end(), declared.begin(), declared.end());
  if (asked && declared.empty()) ids.push_back(need(id, role, option));
}

TENON_INLINE Token Tokenizer::need(std::optional<Token> id, std::string_view role,
                                   std::string_view option) {
  if (id) return *id;
  fail<TokenizerError>("EncodeOptions::", option, " needs a vocabulary with a ", role,
                       " id, this one has none; leave the option out");
}

TENON_INLINE void Tokenizer::check(Token id) const {
  if (parts_->vocabulary.contains(id)) return;
  fail<TokenizerError>("a token id must be at least 0 and below the vocabulary size ", vocab(),
                       ", this one is ", id,
                       "; decode ids of the model that belongs to this tokenizer");
}

}  // namespace tenon::inline TENON_ABI
