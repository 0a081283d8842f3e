#pragma once
// Text to token ids and back.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm.hpp"
#include "special_matcher.hpp"
#include "spm.hpp"
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

struct EncodeOptions {
  std::optional<bool> bos = {};  // put the start id in front; by default what the file says
  std::optional<bool> eos = {};  // put the end id behind; by default what the file says
  bool parse_special = false;    // turn the text of control pieces into their ids
};

struct DecodeOptions {
  bool special = false;  // write the names of control and unknown pieces instead of nothing
};

// Where a decoding stands between two tokens.
struct DecodeState {
  bool starts = true;  // no text came before, or a special piece that was written
};

// Immutable; copies share their tables; every member may be called from any thread.
//
// encode() cuts the text at special pieces and hands what lies between to the algorithm, which may
// put a space in front of each such stretch (not of an empty one), as llama.cpp and the legacy mode
// of Hugging Face do. decode() takes that space away at the start and after every special piece
// that it writes, so decode(encode(text)) == text for every text, UTF-8 or not, that the vocabulary
// can spell (it can when it has the 256 byte pieces). After a control piece that is not written the
// space stays, as with both: it keeps "day.</s><s> Once" from becoming "day.Once".
class Tokenizer {
 public:
  // Reads the keys "tokenizer.ggml.*". LoadError when "tokenizer.ggml.model" names an algorithm
  // that is not in the list below, and as Vocabulary::from and the algorithm's from() say.
  static Tokenizer from(const Metadata& metadata) {
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

  // The ids of a text; empty for an empty text, but for bos and eos. Any bytes are legal: what is
  // not UTF-8 is spelled in byte pieces. A start id is put in front also of a text that spells one
  // itself; whoever renders templates asks for none. O(n log n). TokenizerError when bos or eos is
  // asked for and the vocabulary has none, or the text is longer than 2^31 - 1 bytes.
  std::vector<Token> encode(std::string_view text, EncodeOptions options = {}) const {
    if (text.size() > most_bytes) {
      fail<TokenizerError>("a text must have at most ", most_bytes,
                           " bytes to be encoded in one call, this one has ", text.size(),
                           "; encode it in parts");
    }
    std::vector<Token> ids;
    ids.reserve(text.size() / 4 + 3);
    if (options.bos.value_or(parts_->adds_bos)) ids.push_back(need(bos(), "start", "bos"));
    std::size_t at = 0;
    for (const SpecialMatcher::Match& match : parts_->specials.find(text, options.parse_special)) {
      parts_->algorithm->encode(text.substr(at, match.at - at), ids);
      ids.push_back(match.id);
      at = match.at + match.size;
    }
    parts_->algorithm->encode(text.substr(at), ids);
    if (options.eos.value_or(parts_->adds_eos)) ids.push_back(need(eos(), "end", "eos"));
    return ids;
  }

  // The text of ids. Bytes as they are: the result is UTF-8 only where the ids are (TextStream
  // repairs). TokenizerError for an id outside the vocabulary.
  std::string decode(std::span<const Token> ids, DecodeOptions options = {}) const {
    std::string text;
    DecodeState state;
    for (const Token id : ids) append(id, state, text, options);
    return text;
  }
  // One step of decode(): adds the text of the next id to `text`.
  void append(Token id, DecodeState& state, std::string& text, DecodeOptions options = {}) const {
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

  // Pieces in the vocabulary.
  int vocab() const { return parts_->vocabulary.size(); }
  // The piece as the file spells it ("\u2581the", "<0x0A>"). TokenizerError outside the vocabulary.
  std::string_view piece(Token id) const {
    check(id);
    return parts_->vocabulary.piece(id);
  }
  TokenKind kind(Token id) const {
    check(id);
    return parts_->vocabulary.kind(id);
  }
  // The bytes that the token adds inside a text (" the", "\n"); none for control and unknown.
  std::string bytes_of(Token id) const {
    std::string text;
    DecodeState inside{false};
    append(id, inside, text);
    return text;
  }
  // The id of a piece spelled as in the file; of equal pieces, the first.
  std::optional<Token> find(std::string_view piece) const {
    for (Token id = 0; id < vocab(); ++id) {
      if (parts_->vocabulary.piece(id) == piece) return id;
    }
    return std::nullopt;
  }

  std::optional<Token> bos() const { return parts_->vocabulary.bos(); }
  std::optional<Token> eos() const { return parts_->vocabulary.eos(); }
  std::optional<Token> unknown() const { return parts_->vocabulary.unknown(); }
  std::optional<Token> padding() const { return parts_->vocabulary.padding(); }
  std::optional<Token> mask() const { return parts_->vocabulary.mask(); }
  // Whether a text ends with this id: the file's eos, eot and eom, and those of with_ends().
  bool is_end(Token id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }
  std::span<const Token> ends() const { return ends_; }
  // The same tokenizer with further end ids, for instance those of a generation_config.json.
  // TokenizerError for one outside the vocabulary.
  Tokenizer with_ends(std::span<const Token> more) const {
    Tokenizer tokenizer = *this;
    for (const Token id : more) {
      check(id);
      if (!is_end(id)) tokenizer.ends_.push_back(id);
    }
    return tokenizer;
  }

 private:
  static constexpr std::size_t most_bytes = (std::size_t{1} << 31) - 1;

  struct Parts {
    Vocabulary vocabulary;
    std::unique_ptr<const TextAlgorithm> algorithm;
    SpecialMatcher specials;
    std::string spelling;             // what each id stands for, one after the other
    std::vector<std::size_t> starts;  // [vocab + 1] offsets into spelling
    bool adds_bos = false, adds_eos = false;

    std::string_view spell(Token id) const {
      const auto i = static_cast<std::size_t>(id);
      return std::string_view(spelling).substr(starts[i], starts[i + 1] - starts[i]);
    }
  };

  Tokenizer() = default;

  using AlgorithmFactory = std::unique_ptr<const TextAlgorithm> (*)(const Metadata&,
                                                                    const Vocabulary&);
  static AlgorithmFactory factory(std::string_view name) {
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
  static bool adds(const Metadata& metadata, std::string_view key, bool fallback,
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
  static Token need(std::optional<Token> id, std::string_view role, std::string_view option) {
    if (id) return *id;
    fail<TokenizerError>("EncodeOptions::", option, " needs a vocabulary with a ", role,
                         " id, this one has none; leave the option out");
  }
  void check(Token id) const {
    if (parts_->vocabulary.contains(id)) return;
    fail<TokenizerError>("a token id must be at least 0 and below the vocabulary size ", vocab(),
                         ", this one is ", id,
                         "; decode ids of the model that belongs to this tokenizer");
  }

  std::shared_ptr<const Parts> parts_;
  std::vector<Token> ends_;
};

}  // namespace tenon::inline TENON_ABI
