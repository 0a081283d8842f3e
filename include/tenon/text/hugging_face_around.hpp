#pragma once
// What a tokenizer.json puts around a text.
#if defined(TENON_WITH_TEXT)
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "hugging_face_node.hpp"
#include "hugging_face_pieces.hpp"
#include "loaded_tokenizer.hpp"

namespace tenon::inline TENON_ABI {
namespace detail {

inline HuggingFaceNode second_of_pair(const HuggingFaceNode& node) {
  const auto pair = node.items();
  if (pair.size() != 2) node.wrong("a piece and its id");
  return pair[1];
}

// What the post-processor puts around one text.
inline void read_around(const HuggingFaceNode& root, const HuggingFacePieces& pieces,
                        LoadedTokenizer& loaded) {
  for (const HuggingFaceNode& node : steps_of(root["post_processor"], "processors")) {
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
          (inside ? after : before).push_back(pieces.id_of(id));
      }
      if (!inside) node.refuse("a template without the text", "the text once");
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      before.push_back(pieces.id_of(second_of_pair(node["cls"])));
      after.push_back(pieces.id_of(second_of_pair(node["sep"])));
    } else if (type != "ByteLevel") {
      node.refuse(message("the post-processor \"", type, "\""),
                  "TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing, Sequence");
    }
    loaded.before.insert(loaded.before.begin(), before.begin(), before.end());
    loaded.after.insert(loaded.after.end(), after.begin(), after.end());
  }
}

// The tokenizer classes of Llama and Gemma replace the post-processor by two settings.
inline void override_around(const HuggingFaceNode& config, LoadedTokenizer& loaded) {
  const HuggingFaceNode name = config["tokenizer_class"];
  if (name.json().text() == nullptr) return;
  bool ours = false;
  for (const std::string_view prefix : {"Llama", "CodeLlama", "Gemma"})
    ours = ours || std::string_view(name.text()).substr(0, prefix.size()) == prefix;
  const auto set = [&](std::string_view key, std::optional<Token> id, std::vector<Token>& ids) {
    const HuggingFaceNode wanted = config[key];
    if (!ours || wanted.is_null()) return;
    ids.clear();
    if (wanted.flag() && id) ids.push_back(*id);
  };
  set("add_bos_token", loaded.vocabulary.bos(), loaded.before);
  set("add_eos_token", loaded.vocabulary.eos(), loaded.after);
}

}  // namespace detail
}  // namespace tenon::inline TENON_ABI
#endif
