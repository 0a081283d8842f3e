#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "hugging_face_tokenizer.hpp"

#if defined(TENON_WITH_TEXT)
#include "hugging_face_around.hpp"
#include "hugging_face_model.hpp"
#include "hugging_face_node.hpp"
#include "hugging_face_pieces.hpp"
#include "hugging_face_steps.hpp"
#include "pipeline.hpp"
#endif

namespace tenon::inline TENON_ABI {

#if defined(TENON_WITH_TEXT)

namespace detail {

// All steps from a text to ids and back.
inline std::unique_ptr<const TextAlgorithm> pipeline_of(const HuggingFaceNode& root,
                                                        std::string_view type,
                                                        const HuggingFacePieces& pieces,
                                                        EncodingSteps encoding,
                                                        const LoadedTokenizer& loaded) {
  const Vocabulary& vocabulary = loaded.vocabulary;
  PipelineSteps steps;
  steps.model = model_of(root, type, pieces, encoding.bytes, vocabulary);
  steps.caches = !encoding.split.empty();
  steps.normalize = std::move(encoding.normalize);
  steps.split = std::move(encoding.split);
  DecodingSteps decoding = decoding_steps(root);
  if (decoding.strips) {
    const bool every =
        encoding.space_in_front == SpaceInFront::of_every_stretch || type == "WordPiece";
    steps.space_in_front = every ? SpaceInFront::of_every_stretch : SpaceInFront::of_the_text;
  }
  steps.spell = [decoding = std::move(decoding)](const Vocabulary& v, Token id) {
    std::string piece(v.piece(id));
    const TokenKind kind = v.kind(id);
    if (kind == TokenKind::byte && decoding.byte_pieces)
      return std::string(1, static_cast<char>(v.byte_of(id)));
    if (kind == TokenKind::control || kind == TokenKind::unknown || kind == TokenKind::user_defined)
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

// The kind of the model. Older files of BPE do not say it.
inline std::string model_type(const HuggingFaceNode& model) {
  const HuggingFaceNode type = model["type"];
  if (type.is_null() && !model["merges"].is_null()) return "BPE";
  const std::string* name = type.json().text();
  for (const std::string_view known : {"BPE", "Unigram", "WordPiece"}) {
    if (name != nullptr && *name == known) return *name;
  }
  type.refuse(name != nullptr ? message("the model \"", *name, "\"")
                              : message("a model of a type that is ", type.json().type_name()),
              "BPE, Unigram, WordPiece");
}

inline JsonValue parse_object(std::string_view text, std::string_view file) {
  JsonValue document = JsonValue::parse(text, file);
  if (document.object() == nullptr)
    fail<LoadError>(file, " must be a JSON object, it is of type ", document.type_name(),
                    "; the file is damaged");
  return document;
}

}  // namespace detail

TENON_INLINE LoadedTokenizer load_hugging_face_tokenizer(const Metadata& metadata) {
  const JsonValue document =
      detail::parse_object(metadata.text("tokenizer.huggingface.json"), "tokenizer.json");
  constexpr std::string_view key = "tokenizer.huggingface.config";
  const JsonValue config =
      detail::parse_object(metadata.text_or(key, "{}"), "tokenizer_config.json");
  const detail::HuggingFaceNode root(document, ""), settings(config, "", "tokenizer_config.json");
  const std::string type = detail::model_type(root["model"]);
  detail::EncodingSteps steps = detail::encoding_steps(root);
  const detail::HuggingFacePieces pieces(root, type);
  LoadedTokenizer loaded;
  detail::read_around(root, pieces, loaded);
  loaded.vocabulary = pieces.vocabulary(settings, metadata);
  detail::override_around(settings, loaded);
  loaded.rules = pieces.rules();
  loaded.algorithm = detail::pipeline_of(root, type, pieces, std::move(steps), loaded);
  return loaded;
}

#else

TENON_INLINE LoadedTokenizer load_hugging_face_tokenizer(const Metadata& metadata) {
  fail<LoadError>("a tokenizer.json (", metadata.text("tokenizer.huggingface.json").size(),
                  " bytes) needs PCRE2 and utf8proc, and this program was built without them; ",
                  "link the CMake target tenon::text");
}

#endif

}  // namespace tenon::inline TENON_ABI
