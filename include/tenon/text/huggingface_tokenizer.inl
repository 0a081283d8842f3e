#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpe.hpp"
#include "huggingface_node.hpp"
#include "huggingface_steps.hpp"
#include "huggingface_tokenizer.hpp"
#include "unigram.hpp"
#include "wordpiece.hpp"

namespace tenon::inline TENON_ABI {

#if defined(TENON_WITH_TEXT)

namespace detail {

// Reads one tokenizer.json (and tokenizer_config.json) into a LoadedTokenizer.
class HuggingFaceReader {
 public:
  HuggingFaceReader(const nlohmann::json& document, const nlohmann::json& config,
                    const Metadata& metadata)
      : root_(document, ""),
        model_(root_["model"]),
        config_(config, "tokenizer_config"),
        metadata_(metadata) {}

  LoadedTokenizer read() {
    type_ = model_["type"].is_null() && !model_["merges"].is_null() ? "BPE" : model_.type();
    steps_ = encoding_steps(root_);
    byte_fallback_ = model_["byte_fallback"].flag_or(false);
    read_vocabulary();
    read_added_tokens();
    LoadedTokenizer loaded;
    read_around(loaded);
    loaded.vocabulary = make_vocabulary();
    override_around(loaded);
    loaded.rules = std::move(rules_);
    loaded.algorithm = make_pipeline(loaded);
    return loaded;
  }

 private:
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
      if (!vocab.json().is_object()) vocab.wrong("an object");
      for (const auto& [text, id] : vocab.json().items()) {
        add_model_piece(text, HuggingFaceNode(id, "model.vocab entry").integer(),
                        vocab.json().size(), vocab);
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

  std::optional<Token> find(std::string_view text) const {
    const auto at = ids_.find(std::string(text));
    return at == ids_.end() ? std::nullopt : std::optional<Token>(at->second);
  }

  // The id of a role: by the name in tokenizer_config.json, or by the metadata's number.
  std::optional<Token> role(std::string_view name, std::string_view key) const {
    HuggingFaceNode node = config_[name];
    if (node.json().is_object()) node = node["content"];
    if (node.json().is_string()) {
      if (const auto id = find(node.text())) return id;
    }
    if (!metadata_.contains(key)) return std::nullopt;
    return static_cast<Token>(metadata_.integer(key));
  }

  Vocabulary make_vocabulary() const {
    Metadata metadata;
    std::vector<std::int64_t> kinds;
    for (const TokenKind kind : kinds_) kinds.push_back(static_cast<std::int64_t>(kind));
    metadata.set("tokenizer.ggml.tokens", MetaValue{MetaType::array, MetaType::string, pieces_});
    metadata.set("tokenizer.ggml.token_type",
                 MetaValue{MetaType::array, MetaType::i32, std::move(kinds)});
    const auto set = [&](std::string_view name, std::string key) {
      if (const auto id = role(name, key))
        metadata.set(key, MetaValue{MetaType::i64, {}, std::int64_t{*id}});
    };
    set("bos_token", "tokenizer.ggml.bos_token_id");
    set("eos_token", "tokenizer.ggml.eos_token_id");
    set("pad_token", "tokenizer.ggml.padding_token_id");
    set("mask_token", "tokenizer.ggml.mask_token_id");
    set("cls_token", "tokenizer.ggml.cls_token_id");
    set("sep_token", "tokenizer.ggml.seperator_token_id");
    constexpr std::string_view ends = "tokenizer.ggml.eos_token_ids";
    if (const MetaValue* value = metadata_.find(ends)) metadata.set(std::string(ends), *value);
    return Vocabulary::from(metadata);
  }

  // What the post-processor puts around one text.
  void read_around(LoadedTokenizer& loaded) const {
    for (const HuggingFaceNode& node : steps_of(root_["post_processor"], "processors")) {
      const std::string& type = node.type();
      std::vector<Token> before, after;
      if (type == "TemplateProcessing") {
        bool inside = false;
        for (const HuggingFaceNode& item : node["single"].items()) {
          if (!item["Sequence"].is_null()) {
            if (inside) item.refuse("the text twice", "the text once");
            inside = true;
            continue;
          }
          const HuggingFaceNode special = node["special_tokens"][item["SpecialToken"]["id"].text()];
          for (const HuggingFaceNode& id : special["ids"].items())
            (inside ? after : before).push_back(id_of(id));
        }
        if (!inside) node.refuse("a template without the text", "the text once");
      } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        before.push_back(id_of(second(node["cls"])));
        after.push_back(id_of(second(node["sep"])));
      } else if (type != "ByteLevel") {
        node.refuse(message("the post-processor \"", type, "\""),
                    "TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing, Sequence");
      }
      loaded.before.insert(loaded.before.begin(), before.begin(), before.end());
      loaded.after.insert(loaded.after.end(), after.begin(), after.end());
    }
  }
  Token id_of(const HuggingFaceNode& node) const {
    const std::int64_t id = node.integer();
    if (id < 0 || static_cast<std::uint64_t>(id) >= pieces_.size())
      node.refuse("a piece outside the vocabulary", "one inside");
    return static_cast<Token>(id);
  }
  static HuggingFaceNode second(const HuggingFaceNode& node) {
    const auto pair = node.items();
    if (pair.size() != 2) node.wrong("a piece and its id");
    return pair[1];
  }

  // The tokenizer classes of Llama and Gemma replace the post-processor by two settings.
  void override_around(LoadedTokenizer& loaded) const {
    const HuggingFaceNode name = config_["tokenizer_class"];
    if (!name.json().is_string()) return;
    bool ours = false;
    for (const std::string_view prefix : {"Llama", "CodeLlama", "Gemma"})
      ours = ours || std::string_view(name.text()).substr(0, prefix.size()) == prefix;
    const auto set = [&](std::string_view key, std::optional<Token> id, std::vector<Token>& ids) {
      const HuggingFaceNode wanted = config_[key];
      if (!ours || wanted.is_null()) return;
      ids.clear();
      if (wanted.flag() && id) ids.push_back(*id);
    };
    set("add_bos_token", loaded.vocabulary.bos(), loaded.before);
    set("add_eos_token", loaded.vocabulary.eos(), loaded.after);
  }

  std::unique_ptr<const WordModel> make_model(const Vocabulary& vocabulary) const {
    const auto refuse = [&](std::string_view key) {
      const HuggingFaceNode node = model_[key];
      const bool empty = node.is_null() || (node.json().is_string() && node.text().empty()) ||
                         (node.json().is_number() && node.number() == 0);
      if (!empty) node.refuse(key, "none");
    };
    const BytePieces bytes = byte_fallback_ ? byte_pieces_of(vocabulary) : no_byte_pieces();
    std::vector<std::string> words(pieces_.size());
    std::vector<bool> whole(pieces_.size());
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      const bool plain = kinds_[id] == TokenKind::normal || kinds_[id] == TokenKind::user_defined;
      whole[id] = in_model_[id] && plain;
      if (in_model_[id])
        words[id] = steps_.bytes ? ByteAlphabet::bytes(pieces_[id]).value_or("") : pieces_[id];
    }
    if (type_ == "BPE") {
      for (const std::string_view key :
           {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
        refuse(key);
      const BpeOptions options{.bytes = steps_.bytes,
                               .ignore_merges = model_["ignore_merges"].flag_or(false),
                               .fuse_unknown = model_["fuse_unk"].flag_or(false),
                               .unknown = unknown_};
      return std::make_unique<Bpe>(words, whole, read_merges(), bytes, options);
    }
    if (steps_.bytes)
      root_["pre_tokenizer"].refuse(message("ByteLevel for the model \"", type_, "\""),
                                    "ByteLevel for BPE");
    if (type_ == "Unigram") {
      std::vector<double> scores = scores_;
      scores.resize(pieces_.size());
      for (std::size_t id = 0; id < pieces_.size(); ++id) {
        if (!whole[id]) words[id].clear();
      }
      return std::make_unique<Unigram>(words, scores, unknown_, bytes, false);
    }
    if (type_ != "WordPiece")
      model_.refuse(message("the model \"", type_, "\""), "BPE, Unigram, WordPiece");
    if (unknown_ < 0) model_["unk_token"].wrong("the unknown piece");
    const HuggingFaceNode declared = model_["continuing_subword_prefix"];
    const std::string prefix = declared.is_null() ? "##" : declared.text();
    const std::int64_t most = model_["max_input_chars_per_word"].integer_or(100);
    if (most < 0 || most > 1000)
      model_["max_input_chars_per_word"].refuse(message(most), "0 to 1000");
    std::vector<ByteTrie::Entry> heads, tails;
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      if (!whole[id]) continue;
      heads.emplace_back(words[id], static_cast<Token>(id));
      if (words[id].compare(0, prefix.size(), prefix) == 0)
        tails.emplace_back(std::string_view(words[id]).substr(prefix.size()),
                           static_cast<Token>(id));
    }
    return std::make_unique<WordPiece>(std::move(heads), std::move(tails), unknown_,
                                       static_cast<std::size_t>(most));
  }

  Bpe::Merges read_merges() const {
    Bpe::Merges merges;
    const auto written = [&](const std::string& text) {
      return steps_.bytes ? ByteAlphabet::bytes(text).value_or(text) : text;
    };
    for (const HuggingFaceNode& item : model_["merges"].items()) {
      std::pair<std::string, std::string> merge;
      if (item.json().is_array()) {
        const auto pair = item.items();
        if (pair.size() != 2) item.wrong("two pieces");
        merge = {pair[0].text(), pair[1].text()};
      } else {
        merge = merge_of_line(item.text(), merges.size());
      }
      merges.emplace_back(written(merge.first), written(merge.second));
    }
    return merges;
  }

  std::unique_ptr<const TextAlgorithm> make_pipeline(const LoadedTokenizer& loaded) {
    const Vocabulary& vocabulary = loaded.vocabulary;
    PipelineSteps steps;
    steps.model = make_model(vocabulary);
    steps.caches = !steps_.split.empty();
    steps.normalize = std::move(steps_.normalize);
    steps.split = std::move(steps_.split);
    DecodingSteps decoding = decoding_steps(root_);
    if (decoding.strips) {
      const bool every =
          steps_.space_in_front == SpaceInFront::of_every_stretch || type_ == "WordPiece";
      steps.space_in_front = every ? SpaceInFront::of_every_stretch : SpaceInFront::of_the_text;
    }
    steps.spell = [decoding = std::move(decoding)](const Vocabulary& v, Token id) {
      std::string piece(v.piece(id));
      const TokenKind kind = v.kind(id);
      if (kind == TokenKind::byte && decoding.byte_pieces)
        return std::string(1, static_cast<char>(v.byte_of(id)));
      if (kind == TokenKind::control || kind == TokenKind::unknown ||
          kind == TokenKind::user_defined)
        return piece;
      for (const TextStep& step : decoding.pieces) step(piece);
      return piece;
    };
    auto pipeline = std::make_unique<Pipeline>(std::move(steps));
    std::unordered_map<Token, std::string> normalized;
    for (const auto& [id, rule] : loaded.rules) {
      if (rule.normalized) normalized[id] = pipeline->normalized(std::string(vocabulary.piece(id)));
    }
    const auto spelling = [&](Token id) {
      const auto at = normalized.find(id);
      return at == normalized.end() ? std::string_view() : std::string_view(at->second);
    };
    if (!normalized.empty())
      pipeline->find_in_normalized(SpecialMatcher(vocabulary, spelling, loaded.rules));
    return pipeline;
  }

  HuggingFaceNode root_, model_, config_;
  const Metadata& metadata_;
  std::string type_;
  EncodingSteps steps_;
  bool byte_fallback_ = false;
  Token unknown_ = -1;
  std::vector<std::string> pieces_;  // by id
  std::vector<TokenKind> kinds_;
  std::vector<bool> in_model_;
  std::vector<double> scores_;
  std::unordered_map<std::string, Token> ids_;
  AddedRules rules_;
};

inline nlohmann::json parse_json(std::string_view text, std::string_view file) {
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    fail<LoadError>(file, " must be JSON, reading it ends with: ", printable(error.what()),
                    "; the file is damaged");
  }
  if (!document.is_object())
    fail<LoadError>(file, " must be a JSON object, it is of type ", document.type_name(),
                    "; the file is damaged");
  return document;
}

}  // namespace detail

TENON_INLINE LoadedTokenizer load_huggingface_tokenizer(const Metadata& metadata) {
  const nlohmann::json document =
      detail::parse_json(metadata.text("tokenizer.huggingface.json"), "tokenizer.json");
  constexpr std::string_view key = "tokenizer.huggingface.config";
  const nlohmann::json config =
      detail::parse_json(metadata.text_or(key, "{}"), "tokenizer_config.json");
  return detail::HuggingFaceReader(document, config, metadata).read();
}

#else

TENON_INLINE LoadedTokenizer load_huggingface_tokenizer(const Metadata& metadata) {
  fail<LoadError>(
      "a tokenizer.json (", metadata.text("tokenizer.huggingface.json").size(),
      " bytes) needs nlohmann-json, PCRE2 and utf8proc, and this program was built without them; ",
      "link the CMake target tenon::text");
}

#endif

}  // namespace tenon::inline TENON_ABI
