#pragma once
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE Vocabulary Vocabulary::from(const Metadata& metadata) {
  Vocabulary v;
  v.read_pieces(metadata.texts("tokenizer.ggml.tokens"));
  v.read_kinds(metadata.integers("tokenizer.ggml.token_type"));
  v.bos_ = v.read_id(metadata, "tokenizer.ggml.bos_token_id");
  v.eos_ = v.read_id(metadata, "tokenizer.ggml.eos_token_id");
  if (!v.bos_) v.bos_ = v.read_id(metadata, "tokenizer.ggml.cls_token_id");
  if (!v.eos_) v.eos_ = v.read_id(metadata, "tokenizer.ggml.seperator_token_id");  // sic
  v.unknown_ = v.read_id(metadata, "tokenizer.ggml.unknown_token_id");
  v.padding_ = v.read_id(metadata, "tokenizer.ggml.padding_token_id");
  v.mask_ = v.read_id(metadata, "tokenizer.ggml.mask_token_id");
  if (!v.unknown_) {
    const auto at = std::find(v.kinds_.begin(), v.kinds_.end(), TokenKind::unknown);
    if (at != v.kinds_.end()) v.unknown_ = static_cast<Token>(at - v.kinds_.begin());
  }
  constexpr std::string_view more = "tokenizer.ggml.eos_token_ids";
  if (metadata.contains(more)) {
    for (const std::int64_t id : metadata.integers(more)) {
      const Token end = v.check_id(id, more);
      if (!v.eos_) v.eos_ = end;
      v.add_end(end);
    }
  }
  constexpr std::string_view turn = "tokenizer.ggml.eot_token_id";
  for (const std::optional<Token> end :
       {v.eos_, v.read_id(metadata, turn), v.read_id(metadata, "tokenizer.ggml.eom_token_id")}) {
    if (end) v.add_end(*end);
  }
  if (!metadata.contains(turn)) v.add_ends_by_name();
  return v;
}

TENON_INLINE void Vocabulary::add_end(Token id) {
  if (std::find(ends_.begin(), ends_.end(), id) == ends_.end()) ends_.push_back(id);
}

TENON_INLINE void Vocabulary::add_ends_by_name() {
  constexpr std::string_view names[] = {"<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>",
                                        "<|eom_id|>"};
  // Where a turn ends with this one, "<|end|>" only ends a part of it.
  bool parts = false;
  for (Token id = 0; id < size(); ++id) parts = parts || piece(id) == "<|return|>";
  for (Token id = 0; id < size(); ++id) {
    if (kind(id) != TokenKind::control || (parts && piece(id) == "<|end|>")) continue;
    if (std::find(std::begin(names), std::end(names), piece(id)) != std::end(names)) add_end(id);
  }
}

TENON_INLINE std::string_view Vocabulary::piece(Token id) const {
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(text_).substr(starts_[i], starts_[i + 1] - starts_[i]);
}

TENON_INLINE unsigned char Vocabulary::byte_of(Token id) const {
  return static_cast<unsigned char>(hex_digit(piece(id)[3]) * 16 + hex_digit(piece(id)[4]));
}

TENON_INLINE std::optional<Token> Vocabulary::byte_piece(unsigned char byte) const {
  const Token id = bytes_[byte];
  return id < 0 ? std::nullopt : std::optional<Token>(id);
}

TENON_INLINE bool Vocabulary::spells_every_byte() const {
  return std::none_of(bytes_.begin(), bytes_.end(), [](Token id) { return id < 0; });
}

TENON_INLINE void Vocabulary::read_pieces(const std::vector<std::string>& pieces) {
  std::size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  if (pieces.empty() || pieces.size() > most_pieces || bytes > most_bytes) {
    fail<LoadError>("metadata array \"tokenizer.ggml.tokens\" must hold 1 to ", most_pieces,
                    " pieces of at most ", most_bytes, " bytes together, it holds ", pieces.size(),
                    " of ", bytes, " bytes; the file is damaged or hostile");
  }
  text_.reserve(bytes);
  starts_.reserve(pieces.size() + 1);
  starts_.push_back(0);
  for (const std::string& piece : pieces) {
    text_ += piece;
    starts_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
}

TENON_INLINE void Vocabulary::read_kinds(const std::vector<std::int64_t>& kinds) {
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
      fail<LoadError>("metadata array \"tokenizer.ggml.token_type\" must hold kinds 1 to 6, token ",
                      id, " has ", kind, "; convert the checkpoint again with a current converter");
    }
    kinds_.push_back(static_cast<TokenKind>(kind));
    if (kinds_.back() == TokenKind::byte) bytes_[read_byte(id)] = id;
  }
}

TENON_INLINE unsigned char Vocabulary::read_byte(Token id) const {
  const std::string_view text = piece(id);
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>' || hex_digit(text[3]) < 0 ||
      hex_digit(text[4]) < 0) {
    fail<LoadError>("byte piece ", id,
                    " of \"tokenizer.ggml.tokens\" must be written <0xHH>, it is \"",
                    printable(text), "\"; convert the checkpoint again with a current converter");
  }
  return byte_of(id);
}

TENON_INLINE std::optional<Token> Vocabulary::read_id(const Metadata& metadata,
                                                      std::string_view key) const {
  if (!metadata.contains(key)) return std::nullopt;
  return check_id(metadata.integer(key), key);
}

TENON_INLINE Token Vocabulary::check_id(std::int64_t id, std::string_view key) const {
  if (id < 0 || id >= size()) {
    fail<LoadError>("metadata key \"", key, "\" must be a token id below the vocabulary size ",
                    size(), ", it is ", id,
                    "; convert the checkpoint again with a current converter");
  }
  return static_cast<Token>(id);
}

}  // namespace tenon::inline TENON_ABI
