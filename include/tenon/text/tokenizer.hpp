#pragma once
// Text to token ids and back.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "algorithm.hpp"
#include "loaded_tokenizer.hpp"
#include "special_matcher.hpp"
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

// Bytes [from, to) of a text.
struct PlainRange {
  std::size_t from = 0, to = 0;
};

struct EncodeOptions {
  std::optional<bool> bos = {};  // put the start id in front; by default what the file says
  std::optional<bool> eos = {};  // put the end id behind; by default what the file says
  bool parse_special = false;    // turn the text of control pieces into their ids
  // Bytes in which parse_special does not hold, in order and apart: text of users within that of a
  // template. A control piece must lie outside all of them.
  std::span<const PlainRange> plain = {};
};

struct DecodeOptions {
  bool special = false;  // write the names of control and unknown pieces instead of nothing
};

// Where a decoding stands between two tokens.
struct DecodeState {
  bool starts = true;  // no text came before, or a special piece after which a space is put
};

// Immutable; copies share their tables; every member may be called from any thread.
//
// encode() cuts the text at special pieces and hands what lies between to the algorithm, which may
// put a space in front of each such stretch (not of an empty one), as llama.cpp and the legacy mode
// of Hugging Face do. decode() takes that space away at the start and after every special piece
// that it writes, so decode(encode(text)) == text for every text, UTF-8 or not, that the vocabulary
// can spell (it can when it has the 256 byte pieces, or is byte-level with a piece of each byte)
// and the file has no step that changes the text (a normal form, lower case, U+2581 for the space,
// ...). After a control piece that is not written the space stays, as with both: it keeps
// "day.</s><s> Once" from becoming "day.Once".
class Tokenizer {
 public:
  // Reads the keys "tokenizer.ggml.*" of GGUF where "tokenizer.ggml.model" is there; else the texts
  // of tokenizer.json and tokenizer_config.json under "tokenizer.huggingface.json" and ".config";
  // else the bytes of a tokenizer.model under "tokenizer.sentencepiece.model". LoadError when a
  // file declares a step that is not implemented, and as the readers of each say.
  static Tokenizer from(const Metadata& metadata);
  // Of an open checkpoint (a TensorSource): the same, and errors name its file or folder.
  template <class Source>
  requires requires(const Source& source) {
    { source.metadata() } -> std::same_as<const Metadata&>;
    { source.origin() } -> std::same_as<std::string_view>;
  }
  static Tokenizer from(const Source& source) {
    return naming_origin(source.origin(), [&] { return from(source.metadata()); });
  }

  // The ids of a text; empty for an empty text, but for bos and eos. Any bytes are legal: what is
  // not UTF-8 is spelled in byte pieces or, byte by byte, in a byte-level vocabulary. A start id is
  // put in front also of a text that spells one itself; whoever renders templates asks for none.
  // O(n log n). TokenizerError when bos or eos is asked for and the vocabulary has none, or the
  // text is longer than 2^31 - 1 bytes.
  std::vector<Token> encode(std::string_view text, EncodeOptions options = {}) const;

  // The text of ids. Bytes as they are: the result is UTF-8 only where the ids are (TextStream
  // repairs). TokenizerError for an id outside the vocabulary.
  std::string decode(std::span<const Token> ids, DecodeOptions options = {}) const;
  // One step of decode(): adds the text of the next id to `text`.
  void append(Token id, DecodeState& state, std::string& text, DecodeOptions options = {}) const;

  // Pieces in the vocabulary.
  int vocab() const { return parts_->vocabulary.size(); }
  // The piece as the file spells it ("\u2581the", "<0x0A>"). TokenizerError outside the vocabulary.
  std::string_view piece(Token id) const;
  TokenKind kind(Token id) const;
  // The bytes that the token adds inside a text (" the", "\n"); none for control and unknown.
  std::string bytes_of(Token id) const;
  // The id of a piece spelled as in the file; of equal pieces, the first.
  std::optional<Token> find(std::string_view piece) const;

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
  Tokenizer with_ends(std::span<const Token> more) const;

 private:
  static constexpr std::size_t most_bytes = (std::size_t{1} << 31) - 1;

  struct Parts {
    Vocabulary vocabulary;
    std::unique_ptr<const TextAlgorithm> algorithm;
    SpecialMatcher specials;
    AddedRules rules;
    std::string spelling;              // what each id stands for, one after the other
    std::vector<std::size_t> starts;   // [vocab + 1] offsets into spelling
    std::vector<Token> before, after;  // ids around a text

    std::string_view spell(Token id) const;
  };

  Tokenizer() = default;

  static LoadedTokenizer load(const Metadata& metadata);
  static void add_around(std::optional<bool> asked, const std::vector<Token>& declared,
                         std::optional<Token> id, std::string_view role, std::string_view option,
                         std::vector<Token>& ids);
  static Token need(std::optional<Token> id, std::string_view role, std::string_view option);
  void check(Token id) const;
  std::vector<SpecialMatcher::Match> find_special(std::string_view text,
                                                  const EncodeOptions& options) const;

  std::shared_ptr<const Parts> parts_;
  std::vector<Token> ends_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "tokenizer.inl"
#endif
