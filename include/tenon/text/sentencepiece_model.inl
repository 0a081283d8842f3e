#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gguf_tokenizer.hpp"
#include "sentencepiece_model.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// The fields of one protobuf message, one after the other. Every length is checked against what is
// there; groups, which no SentencePiece model has, are refused.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : rest_(bytes) {}

  // False at the end of the message.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field_ = key >> 3;
    wire_ = static_cast<int>(key & 7);
    switch (wire_) {
      case 0:
        number_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        damaged("a field of wire type ", wire_);
    }
    return true;
  }
  std::uint64_t field() const { return field_; }
  // The value of the field; LoadError when it has another type.
  std::uint64_t number() const {
    if (wire_ != 0) damaged("field ", field_, ", which is no integer");
    return number_;
  }
  bool flag() const { return number() != 0; }
  std::string_view bytes() const {
    if (wire_ != 2) damaged("field ", field_, ", which is no text");
    return bytes_;
  }
  float real() const {
    if (wire_ != 5) damaged("field ", field_, ", which is no 32-bit number");
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i)
      bits |= std::uint32_t{static_cast<unsigned char>(bytes_[i])} << 8 * i;
    return std::bit_cast<float>(bits);
  }

 private:
  template <class... Parts>
  [[noreturn]] static void damaged(const Parts&... parts) {
    fail<LoadError>("tokenizer.model must be a SentencePiece model (a protobuf message), it has ",
                    parts..., "; the file is damaged");
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) damaged("a number without its end");
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    damaged("a number of more than ten bytes");
  }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size())
      damaged("a field of ", size, " bytes where ", rest_.size(), " are left");
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_, bytes_;
  std::uint64_t field_ = 0, number_ = 0;
  int wire_ = 0;
};

// What a ModelProto says, as far as it concerns encoding; defaults are the format's.
struct SentencePieceModel {
  std::vector<std::string> pieces;
  std::vector<double> scores;
  std::vector<std::int64_t> kinds;
  std::string_view character_map;
  std::uint64_t type = 1;
  std::int64_t unknown = 0, bos = 1, eos = 2, padding = -1;
  bool prefix = true, trim = true, escape = true, suffix = false;

  explicit SentencePieceModel(std::string_view bytes) {
    ProtobufReader message(bytes);
    while (message.next()) {
      if (message.field() == 1) read_piece(message.bytes());
      if (message.field() == 2) read_trainer(message.bytes());
      if (message.field() == 3) read_normalizer(message.bytes());
      if (message.field() == 5) read_denormalizer(message.bytes());
    }
  }

 private:
  void read_piece(std::string_view bytes) {
    ProtobufReader piece(bytes);
    std::string text;
    double score = 0;
    std::int64_t kind = 1;
    while (piece.next()) {
      if (piece.field() == 1) text = piece.bytes();
      if (piece.field() == 2) score = static_cast<double>(piece.real());
      if (piece.field() == 3) kind = static_cast<std::int64_t>(piece.number());
    }
    pieces.push_back(std::move(text));
    scores.push_back(score);
    kinds.push_back(kind);  // the numbers are those of GGUF
  }
  void read_trainer(std::string_view bytes) {
    ProtobufReader trainer(bytes);
    const auto id = [&] { return static_cast<std::int32_t>(trainer.number()); };
    while (trainer.next()) {
      if (trainer.field() == 3) type = trainer.number();
      if (trainer.field() == 24) suffix = trainer.flag();
      if (trainer.field() == 40) unknown = id();
      if (trainer.field() == 41) bos = id();
      if (trainer.field() == 42) eos = id();
      if (trainer.field() == 43) padding = id();
    }
  }
  void read_normalizer(std::string_view bytes) {
    ProtobufReader normalizer(bytes);
    while (normalizer.next()) {
      if (normalizer.field() == 2) character_map = normalizer.bytes();
      if (normalizer.field() == 3) prefix = normalizer.flag();
      if (normalizer.field() == 4) trim = normalizer.flag();
      if (normalizer.field() == 5) escape = normalizer.flag();
    }
  }
  static void read_denormalizer(std::string_view bytes) {
    ProtobufReader denormalizer(bytes);
    while (denormalizer.next()) {
      if (denormalizer.field() != 2 || denormalizer.bytes().empty()) continue;
      fail<LoadError>(
          "tokenizer.model must have steps that are implemented, it has a character map for ",
          "decoding; this tokenizer cannot be used");
    }
  }
};

}  // namespace detail

TENON_INLINE Metadata metadata_of_sentencepiece(std::string_view bytes) {
  detail::SentencePieceModel model(bytes);
  const char* kind = model.type == 1 ? "t5" : "llama";
  const bool known = model.type == 1 || model.type == 2;
  if (!known || !model.escape || model.suffix) {
    const std::string what = !known          ? message("model type ", model.type)
                             : !model.escape ? std::string("spaces that stay spaces")
                                             : std::string("white space at the end of pieces");
    fail<LoadError>(
        "tokenizer.model must be of the type unigram (1) or BPE (2) with the usual treatment of ",
        "spaces, it has ", what, "; this tokenizer cannot be used");
  }
  const auto array = [](MetaType item, auto values) {
    return MetaValue{MetaType::array, item, std::move(values)};
  };
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", kind);
  const auto size = static_cast<std::int64_t>(model.pieces.size());
  metadata.set("tokenizer.ggml.tokens", array(MetaType::string, std::move(model.pieces)));
  metadata.set("tokenizer.ggml.scores", array(MetaType::f32, std::move(model.scores)));
  metadata.set("tokenizer.ggml.token_type", array(MetaType::i32, std::move(model.kinds)));
  const auto set_id = [&](const char* key, std::int64_t id) {
    if (id >= 0 && id < size) metadata.set(key, static_cast<std::uint32_t>(id));
  };
  set_id("tokenizer.ggml.unknown_token_id", model.unknown);
  set_id("tokenizer.ggml.bos_token_id", model.bos);
  set_id("tokenizer.ggml.eos_token_id", model.eos);
  set_id("tokenizer.ggml.padding_token_id", model.padding);
  metadata.set("tokenizer.ggml.add_space_prefix", model.prefix);
  metadata.set("tokenizer.ggml.remove_extra_whitespaces", model.trim);
  if (!model.character_map.empty()) {
    std::vector<std::uint64_t> map;
    for (const char c : model.character_map) map.push_back(static_cast<unsigned char>(c));
    metadata.set("tokenizer.ggml.precompiled_charsmap", array(MetaType::u8, std::move(map)));
  }
  return metadata;
}

TENON_INLINE LoadedTokenizer load_sentencepiece_tokenizer(const Metadata& metadata) {
  Metadata converted = metadata_of_sentencepiece(metadata.text("tokenizer.sentencepiece.model"));
  for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                          "tokenizer.ggml.eos_token_ids", "tokenizer.ggml.padding_token_id",
                          "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"}) {
    if (const MetaValue* value = metadata.find(key)) converted.set(key, *value);
  }
  return load_gguf_tokenizer(converted, true);
}

}  // namespace tenon::inline TENON_ABI
