#pragma once
// The vocabulary of a tokenizer.json: pieces, added tokens and the roles that some of them have.
#if defined(TENON_WITH_TEXT)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/metadata.hpp"
#include "hugging_face_node.hpp"
#include "special_matcher.hpp"
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {
namespace detail {

// The pieces of the model and the added tokens, by id. LoadError for ids that are damaged or ask
// for many times the memory of the file.
class HuggingFacePieces {
 public:
  HuggingFacePieces(const HuggingFaceNode& root, std::string_view type)
      : root_(root),
        model_(root["model"]),
        type_(type),
        byte_fallback_(model_["byte_fallback"].flag_or(false)) {
    read_vocabulary();
    read_added_tokens();
  }

  std::size_t size() const { return pieces_.size(); }
  const std::string& text(std::size_t id) const { return pieces_[id]; }
  TokenKind kind(std::size_t id) const { return kinds_[id]; }
  // Whether the model may make it; added tokens may be none of its pieces.
  bool in_model(std::size_t id) const { return in_model_[id]; }
  // Of Unigram, by id; none of the others.
  const std::vector<double>& scores() const { return scores_; }
  bool byte_fallback() const { return byte_fallback_; }
  Token unknown() const { return unknown_; }  // -1: there is none
  const AddedRules& rules() const { return rules_; }

  std::optional<Token> find(std::string_view text) const {
    const auto at = ids_.find(std::string(text));
    return at == ids_.end() ? std::nullopt : std::optional<Token>(at->second);
  }

  // The id that a node states.
  Token id_of(const HuggingFaceNode& node) const {
    const std::int64_t id = node.integer();
    if (id < 0 || static_cast<std::uint64_t>(id) >= pieces_.size())
      node.refuse("a piece outside the vocabulary", "one inside");
    return static_cast<Token>(id);
  }
  // The vocabulary, with the roles that tokenizer_config.json names or else the metadata number.
  Vocabulary vocabulary(const HuggingFaceNode& config, const Metadata& given) const {
    Metadata metadata;
    std::vector<std::int64_t> kinds;
    for (const TokenKind kind : kinds_) kinds.push_back(static_cast<std::int64_t>(kind));
    metadata.set("tokenizer.ggml.tokens", MetaValue{MetaType::array, MetaType::string, pieces_});
    metadata.set("tokenizer.ggml.token_type",
                 MetaValue{MetaType::array, MetaType::i32, std::move(kinds)});
    const auto set = [&](std::string_view name, std::string key) {
      if (const auto id = role(config, given, name, key))
        metadata.set(key, MetaValue{MetaType::i64, {}, std::int64_t{*id}});
    };
    set("bos_token", "tokenizer.ggml.bos_token_id");
    set("eos_token", "tokenizer.ggml.eos_token_id");
    set("pad_token", "tokenizer.ggml.padding_token_id");
    set("mask_token", "tokenizer.ggml.mask_token_id");
    set("cls_token", "tokenizer.ggml.cls_token_id");
    set("sep_token", "tokenizer.ggml.seperator_token_id");
    constexpr std::string_view ends = "tokenizer.ggml.eos_token_ids";
    if (const MetaValue* value = given.find(ends)) metadata.set(std::string(ends), *value);
    return Vocabulary::from(metadata);
  }

 private:
  // The id of a role: by the name in tokenizer_config.json, or by the metadata's number.
  std::optional<Token> role(const HuggingFaceNode& config, const Metadata& given,
                            std::string_view name, std::string_view key) const {
    HuggingFaceNode node = config[name];
    if (node.json().object() != nullptr) node = node["content"];
    if (node.json().text() != nullptr) {
      if (const auto id = find(node.text())) return id;
    }
    if (!given.contains(key)) return std::nullopt;
    return static_cast<Token>(given.integer(key));
  }

  static constexpr std::size_t most_pieces = std::size_t{1} << 26;

  void place(std::string_view text, std::int64_t id, std::size_t entries,
             const HuggingFaceNode& node) {
    // Ids may have gaps, but a file must not ask for many times its own size.
    const std::size_t limit = 2 * entries + (std::size_t{1} << 16);
    if (id < 0 || static_cast<std::uint64_t>(id) >= (std::min)(limit, most_pieces)) {
      fail<LoadError>("tokenizer.json: ", printable(node.path()),
                      " must give ids from 0 to about the number of ", "its pieces (", entries,
                      "), \"", printable(text), "\" has ", id, "; the file is damaged or hostile");
    }
    const auto at = static_cast<std::size_t>(id);
    if (at >= pieces_.size()) {
      pieces_.resize(at + 1);
      kinds_.resize(at + 1, TokenKind::unused);
      in_model_.resize(at + 1, false);
    }
    pieces_[at] = text;
  }

  void read_vocabulary() {
    const HuggingFaceNode vocab = model_["vocab"];
    if (type_ == "Unigram") {
      const auto items = vocab.items();
      for (const HuggingFaceNode& item : items) {
        const auto pair = item.items();
        if (pair.size() != 2) item.wrong("a piece and its score");
        add_model_piece(pair[0].text(), static_cast<std::int64_t>(scores_.size()), items.size(),
                        vocab);
        scores_.push_back(pair[1].number());
      }
    } else {
      const JsonValue::Object* entries = vocab.json().object();
      if (entries == nullptr) vocab.wrong("an object");
      for (const auto& [text, id] : *entries) {
        add_model_piece(text, HuggingFaceNode(id, "model.vocab entry").integer(), entries->size(),
                        vocab);
      }
    }
    const HuggingFaceNode unknown = type_ == "Unigram" ? model_["unk_id"] : model_["unk_token"];
    if (unknown.is_null()) return;
    const std::int64_t id =
        type_ == "Unigram" ? unknown.integer() : std::int64_t{find(unknown.text()).value_or(-1)};
    if (id < 0 || static_cast<std::uint64_t>(id) >= pieces_.size()) {
      if (type_ == "BPE") return;  // its files may name one that they lack
      unknown.refuse("a piece outside the vocabulary", "one of the vocabulary");
    }
    unknown_ = static_cast<Token>(id);
    kinds_[static_cast<std::size_t>(unknown_)] = TokenKind::unknown;
  }

  void add_model_piece(const std::string& text, std::int64_t id, std::size_t entries,
                       const HuggingFaceNode& node) {
    place(text, id, entries, node);
    const auto at = static_cast<std::size_t>(id);
    in_model_[at] = true;
    kinds_[at] = byte_fallback_ && is_byte_piece(text) ? TokenKind::byte : TokenKind::normal;
    ids_.insert_or_assign(text, static_cast<Token>(id));
  }

  static bool is_byte_piece(std::string_view text) {
    const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
    return text.size() == 6 && text.substr(0, 3) == "<0x" && text[5] == '>' && hex(text[3]) &&
           hex(text[4]);
  }

  void read_added_tokens() {
    if (root_["added_tokens"].is_null()) return;
    const auto items = root_["added_tokens"].items();
    const std::size_t entries = pieces_.size() + items.size();  // ids may leave some gaps
    for (const HuggingFaceNode& item : items) {
      const std::string& text = item["content"].text();
      const std::int64_t id = item["id"].integer();
      const auto known = ids_.find(text);
      if (known != ids_.end() && known->second != id) {
        fail<LoadError>("tokenizer.json: ", printable(item.path()),
                        " must have the id that the vocabulary gives to \"", printable(text),
                        "\", ", known->second, ", it has ", id, "; the file is damaged");
      }
      place(text, id, entries, item);
      ids_.emplace(text, static_cast<Token>(id));
      const bool special = item["special"].flag_or(false);
      TokenKind& kind = kinds_[static_cast<std::size_t>(id)];
      if (kind != TokenKind::unknown) kind = special ? TokenKind::control : TokenKind::user_defined;
      const AddedRule rule{item["lstrip"].flag_or(false), item["rstrip"].flag_or(false),
                           item["single_word"].flag_or(false),
                           item["normalized"].flag_or(!special)};
      if (rule.left_strip || rule.right_strip || rule.single_word || rule.normalized)
        rules_[static_cast<Token>(id)] = rule;
    }
  }

  HuggingFaceNode root_, model_;
  std::string type_;
  bool byte_fallback_;
  Token unknown_ = -1;
  std::vector<std::string> pieces_;  // by id
  std::vector<TokenKind> kinds_;
  std::vector<bool> in_model_;
  std::vector<double> scores_;
  std::unordered_map<std::string, Token> ids_;
  AddedRules rules_;
};

}  // namespace detail
}  // namespace tenon::inline TENON_ABI
#endif
