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
  static Vocabulary from(const Metadata& metadata);

  int size() const { return static_cast<int>(kinds_.size()); }
  bool contains(Token id) const { return id >= 0 && id < size(); }
  // The id must be in range.
  std::string_view piece(Token id) const;
  TokenKind kind(Token id) const { return kinds_[static_cast<std::size_t>(id)]; }
  // What a byte piece stands for; the id must be one.
  unsigned char byte_of(Token id) const;
  // The piece that stands for a byte.
  std::optional<Token> byte_piece(unsigned char byte) const;
  bool spells_every_byte() const;
  std::optional<Token> bos() const { return bos_; }
  std::optional<Token> eos() const { return eos_; }
  std::optional<Token> unknown() const { return unknown_; }
  std::optional<Token> padding() const { return padding_; }
  std::optional<Token> mask() const { return mask_; }
  // eos (one or several), eot and eom, as far as the file has them; where it names no eot, also the
  // control pieces that usually are one, such as <|eot_id|> and <|im_end|>.
  const std::vector<Token>& ends() const { return ends_; }

 private:
  static constexpr std::size_t most_pieces = std::size_t{1} << 26;
  static constexpr std::size_t most_bytes = std::size_t{1} << 28;

  void read_pieces(const std::vector<std::string>& pieces);
  void read_kinds(const std::vector<std::int64_t>& kinds);
  unsigned char read_byte(Token id) const;
  static constexpr int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  }
  void add_end(Token id);
  void add_ends_by_name();
  Token check_id(std::int64_t id, std::string_view key) const;
  std::optional<Token> read_id(const Metadata& metadata, std::string_view key) const;

  std::string text_;                   // all pieces, one after the other
  std::vector<std::uint32_t> starts_;  // [size + 1] offsets into text_
  std::vector<TokenKind> kinds_;
  std::array<Token, 256> bytes_{};
  std::vector<Token> ends_;
  std::optional<Token> bos_, eos_, unknown_, padding_, mask_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "vocabulary.inl"
#endif
