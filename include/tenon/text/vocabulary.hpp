#pragma once
// The pieces of a tokenizer, their kinds and the ids with a role, as GGUF metadata declares them.
// Source: the GGUF specification, keys "tokenizer.ggml.*".
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../core/metadata.hpp"
#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// What a piece is for; the numbers are those of "tokenizer.ggml.token_type".
enum class TokenKind : std::uint8_t {
  normal = 1,
  unknown = 2,       // stands for text the vocabulary cannot spell
  control = 3,       // a mark such as <s>; never made from plain text
  user_defined = 4,  // always kept whole when it occurs in text
  unused = 5,        // treated as normal
  byte = 6,          // one byte, written <0xHH>
};

class Vocabulary {
 public:
  // Reads tokens, token_type and the ids. LoadError when an array is missing, has another type or
  // another length than the tokens, a kind is not 1..6, a byte piece is not <0xHH>, or an id lies
  // outside the vocabulary. Pieces may be empty, hold NUL, or be no UTF-8.
  static Vocabulary from(const Metadata& metadata) {
    Vocabulary v;
    v.read_pieces(metadata.texts("tokenizer.ggml.tokens"));
    v.read_kinds(metadata.integers("tokenizer.ggml.token_type"));
    v.bos_ = v.read_id(metadata, "tokenizer.ggml.bos_token_id");
    v.eos_ = v.read_id(metadata, "tokenizer.ggml.eos_token_id");
    v.unknown_ = v.read_id(metadata, "tokenizer.ggml.unknown_token_id");
    v.padding_ = v.read_id(metadata, "tokenizer.ggml.padding_token_id");
    v.mask_ = v.read_id(metadata, "tokenizer.ggml.mask_token_id");
    if (!v.unknown_) {
      const auto at = std::find(v.kinds_.begin(), v.kinds_.end(), TokenKind::unknown);
      if (at != v.kinds_.end()) v.unknown_ = static_cast<Token>(at - v.kinds_.begin());
    }
    for (const std::optional<Token> end :
         {v.eos_, v.read_id(metadata, "tokenizer.ggml.eot_token_id"),
          v.read_id(metadata, "tokenizer.ggml.eom_token_id")}) {
      const bool known = std::find(v.ends_.begin(), v.ends_.end(), end) != v.ends_.end();
      if (end && !known) v.ends_.push_back(*end);
    }
    return v;
  }

  int size() const { return static_cast<int>(kinds_.size()); }
  bool contains(Token id) const { return id >= 0 && id < size(); }
  // The id must be in range.
  std::string_view piece(Token id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(text_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }
  TokenKind kind(Token id) const { return kinds_[static_cast<std::size_t>(id)]; }
  // What a byte piece stands for; the id must be one.
  unsigned char byte_of(Token id) const {
    return static_cast<unsigned char>(hex_digit(piece(id)[3]) * 16 + hex_digit(piece(id)[4]));
  }
  // The piece that stands for a byte.
  std::optional<Token> byte_piece(unsigned char byte) const {
    const Token id = bytes_[byte];
    return id < 0 ? std::nullopt : std::optional<Token>(id);
  }
  bool spells_every_byte() const {
    return std::none_of(bytes_.begin(), bytes_.end(), [](Token id) { return id < 0; });
  }
  std::optional<Token> bos() const { return bos_; }
  std::optional<Token> eos() const { return eos_; }
  std::optional<Token> unknown() const { return unknown_; }
  std::optional<Token> padding() const { return padding_; }
  std::optional<Token> mask() const { return mask_; }
  // eos, eot and eom, as far as the file has them.
  const std::vector<Token>& ends() const { return ends_; }

 private:
  static constexpr std::size_t most_pieces = std::size_t{1} << 26;
  static constexpr std::size_t most_bytes = std::size_t{1} << 28;

  void read_pieces(const std::vector<std::string>& pieces) {
    std::size_t bytes = 0;
    for (const std::string& piece : pieces) bytes += piece.size();
    if (pieces.empty() || pieces.size() > most_pieces || bytes > most_bytes) {
      fail<LoadError>("metadata array \"tokenizer.ggml.tokens\" must hold 1 to ", most_pieces,
                      " pieces of at most ", most_bytes, " bytes together, it holds ",
                      pieces.size(), " of ", bytes, " bytes; the file is damaged or hostile");
    }
    text_.reserve(bytes);
    starts_.reserve(pieces.size() + 1);
    starts_.push_back(0);
    for (const std::string& piece : pieces) {
      text_ += piece;
      starts_.push_back(static_cast<std::uint32_t>(text_.size()));
    }
  }
  void read_kinds(const std::vector<std::int64_t>& kinds) {
    if (kinds.size() + 1 != starts_.size()) {
      fail<LoadError>(
          "metadata array \"tokenizer.ggml.token_type\" must have one entry for each of the ",
          starts_.size() - 1, " tokens, it has ", kinds.size(),
          "; convert the checkpoint again with a current converter");
    }
    kinds_.reserve(kinds.size());
    bytes_.fill(-1);
    for (const std::int64_t kind : kinds) {
      const auto id = static_cast<Token>(kinds_.size());
      if (kind < 1 || kind > 6) {
        fail<LoadError>(
            "metadata array \"tokenizer.ggml.token_type\" must hold kinds 1 to 6, token ", id,
            " has ", kind, "; convert the checkpoint again with a current converter");
      }
      kinds_.push_back(static_cast<TokenKind>(kind));
      if (kinds_.back() == TokenKind::byte) bytes_[read_byte(id)] = id;
    }
  }
  unsigned char read_byte(Token id) const {
    const std::string_view text = piece(id);
    if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>' ||
        hex_digit(text[3]) < 0 || hex_digit(text[4]) < 0) {
      fail<LoadError>("byte piece ", id,
                      " of \"tokenizer.ggml.tokens\" must be written <0xHH>, it is \"",
                      printable(text), "\"; convert the checkpoint again with a current converter");
    }
    return byte_of(id);
  }
  static constexpr int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  }
  std::optional<Token> read_id(const Metadata& metadata, std::string_view key) const {
    if (!metadata.contains(key)) return std::nullopt;
    const std::int64_t id = metadata.integer(key);
    if (id < 0 || id >= size()) {
      fail<LoadError>("metadata key \"", key, "\" must be a token id below the vocabulary size ",
                      size(), ", it is ", id,
                      "; convert the checkpoint again with a current converter");
    }
    return static_cast<Token>(id);
  }

  std::string text_;                   // all pieces, one after the other
  std::vector<std::uint32_t> starts_;  // [size + 1] offsets into text_
  std::vector<TokenKind> kinds_;
  std::array<Token, 256> bytes_{};
  std::vector<Token> ends_;
  std::optional<Token> bos_, eos_, unknown_, padding_, mask_;
};

}  // namespace tenon::inline TENON_ABI
