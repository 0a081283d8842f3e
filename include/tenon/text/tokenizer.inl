#pragma once
#include "spm.hpp"
#include "tokenizer.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE Tokenizer Tokenizer::from(const Metadata& metadata) {
  auto parts = std::make_shared<Parts>();
  const AlgorithmFactory from_file = factory(metadata.text("tokenizer.ggml.model"));
  parts->vocabulary = Vocabulary::from(metadata);
  parts->algorithm = from_file(metadata, parts->vocabulary);
  const Vocabulary& vocabulary = parts->vocabulary;
  parts->starts.reserve(static_cast<std::size_t>(vocabulary.size()) + 1);
  for (Token id = 0; id < vocabulary.size(); ++id) {
    parts->starts.push_back(parts->spelling.size());
    parts->spelling += parts->algorithm->spell(vocabulary, id);
  }
  parts->starts.push_back(parts->spelling.size());
  parts->specials = SpecialMatcher(vocabulary, [&](Token id) { return parts->spell(id); });
  parts->adds_bos = adds(metadata, "tokenizer.ggml.add_bos_token", parts->algorithm->adds_bos(),
                         vocabulary.bos(), "tokenizer.ggml.bos_token_id");
  parts->adds_eos = adds(metadata, "tokenizer.ggml.add_eos_token", parts->algorithm->adds_eos(),
                         vocabulary.eos(), "tokenizer.ggml.eos_token_id");
  Tokenizer tokenizer;
  tokenizer.ends_ = vocabulary.ends();
  tokenizer.parts_ = std::move(parts);
  return tokenizer;
}

TENON_INLINE std::vector<Token> Tokenizer::encode(std::string_view text,
                                                  EncodeOptions options) const {
  if (text.size() > most_bytes) {
    fail<TokenizerError>("a text must have at most ", most_bytes,
                         " bytes to be encoded in one call, this one has ", text.size(),
                         "; encode it in parts");
  }
  std::vector<Token> ids;
  ids.reserve(text.size() / 4 + 3);
  if (options.bos.value_or(parts_->adds_bos)) ids.push_back(need(bos(), "start", "bos"));
  std::size_t at = 0;
  for (const SpecialMatcher::Match& match : find_special(text, options)) {
    parts_->algorithm->encode(text.substr(at, match.at - at), ids);
    ids.push_back(match.id);
    at = match.at + match.size;
  }
  parts_->algorithm->encode(text.substr(at), ids);
  if (options.eos.value_or(parts_->adds_eos)) ids.push_back(need(eos(), "end", "eos"));
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
  const auto touches_plain = [&](const Match& match) {
    const auto range =
        std::upper_bound(options.plain.begin(), options.plain.end(), match.at,
                         [](std::size_t place, const TextRange& r) { return place < r.to; });
    return range != options.plain.end() && range->from < match.at + match.size;
  };
  std::vector<Match> control, matches;
  const auto add = [&](std::size_t from, std::size_t to, bool parse, std::vector<Match>& found) {
    if (from >= to) return;
    for (Match match : parts_->specials.find(text.substr(from, to - from), parse)) {
      match.at += from;
      const bool wanted = parse ? kind(match.id) != TokenKind::user_defined
                                : !is_end(match.id) || !touches_plain(match);
      if (wanted) found.push_back(match);
    }
  };
  std::size_t at = 0;
  for (const TextRange& range : options.plain) {
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
  if (kind == TokenKind::control || kind == TokenKind::unknown) {
    if (!options.special) return;
    text += spelling;
    // An unknown piece that stands for characters is part of its stretch. A vocabulary that
    // spells every byte has no use for it, so there it can only be one that was parsed.
    state.starts = kind == TokenKind::control || parts_->vocabulary.spells_every_byte();
    return;
  }
  if (kind == TokenKind::user_defined) {
    text += spelling;
    state.starts = true;
    return;
  }
  if (spelling.empty()) return;
  if (state.starts && parts_->algorithm->adds_space() && spelling[0] == ' ')
    spelling.remove_prefix(1);
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

TENON_INLINE Tokenizer::AlgorithmFactory Tokenizer::factory(std::string_view name) {
  struct Entry {
    std::string_view name;
    AlgorithmFactory from;
  };
  constexpr Entry entries[] = {
      {"llama", Spm::from},
  };
  std::string known;
  for (const Entry& entry : entries) {
    if (name == entry.name) return entry.from;
    known += message(known.empty() ? "" : ", ", '"', entry.name, '"');
  }
  fail<LoadError>(
      "metadata key \"tokenizer.ggml.model\" must name a tokenizer that is implemented (", known,
      "), the file says \"", printable(name), "\"; use a checkpoint with one of these");
}

TENON_INLINE bool Tokenizer::adds(const Metadata& metadata, std::string_view key, bool fallback,
                                  std::optional<Token> id, std::string_view id_key) {
  if (!metadata.contains(key)) return fallback && id;
  const bool wanted = metadata.flag(key);
  if (wanted && !id) {
    fail<LoadError>(
        "metadata key \"", id_key, "\" must name a token because \"", key,
        "\" is true, but it is missing; convert the checkpoint again with a current converter");
  }
  return wanted;
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
