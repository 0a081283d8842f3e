#pragma once
#include <algorithm>

#include "chat.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE ChatTemplate ChatTemplate::from(const Metadata& metadata, const Tokenizer& tokenizer,
                                             std::string_view name) {
  std::string key = "tokenizer.chat_template";
  if (!name.empty()) key += message('.', name);
  if (!metadata.contains(key)) {
    fail<LoadError>(
        "metadata key \"", printable(key),
        "\" must hold the template of conversations, the model has none; give a template "
        "of your own, or use a model that was trained for conversations");
  }
  return ChatTemplate(metadata.text(key), texts_of(tokenizer));
}

TENON_INLINE SpecialTexts ChatTemplate::texts_of(const Tokenizer& tokenizer) {
  const auto text = [&](std::optional<Token> id) {
    return id ? std::string(tokenizer.piece(*id)) : std::string();
  };
  return {text(tokenizer.bos()), text(tokenizer.eos()), text(tokenizer.unknown()),
          text(tokenizer.padding())};
}

namespace detail {

inline jinja::Value dict_of_message(const Message& from) {
  constexpr std::string_view roles[] = {"system",      "user",      "assistant", "tool",
                                        "developer",   "function",  "ipython",   "model",
                                        "observation", "documents", "context"};
  const bool usual = std::find(std::begin(roles), std::end(roles), from.role) != std::end(roles);
  jinja::Dict dict;
  const jinja::Value role(from.role);
  dict.set("role", usual ? role : jinja::user_text(role));
  dict.set("content", jinja::user_text(from.content));
  if (from.fields.is_none()) return dict;
  if (!from.fields.is_dict()) {
    fail<RequestError>("Message::fields must be a dict or none, it is ",
                       jinja::type_name(from.fields), "; put the fields into a jinja::Dict");
  }
  for (const auto& [key, value] : from.fields.dict().entries())
    dict.set(jinja::user_text(key), jinja::user_text(value));
  return dict;
}

}  // namespace detail

TENON_INLINE std::vector<TextSegment> ChatTemplate::render(std::span<const Message> messages,
                                                           const ChatOptions& options) const {
  std::vector<jinja::Value> list;
  for (const Message& one : messages) list.push_back(detail::dict_of_message(one));
  jinja::Dict variables;
  const auto set_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) variables.set(name, text);
  };
  set_text("bos_token", texts_.bos);
  set_text("eos_token", texts_.eos);
  set_text("unk_token", texts_.unknown);
  set_text("pad_token", texts_.padding);
  variables.set("messages", jinja::List(std::move(list)));
  variables.set("tools", jinja::user_text(options.tools));
  variables.set("documents", jinja::user_text(options.documents));
  variables.set("add_generation_prompt", options.add_generation_prompt);
  if (options.variables.is_dict()) {
    for (const auto& [key, value] : options.variables.dict().entries())
      variables.set(key, jinja::user_text(value));
  } else if (!options.variables.is_none()) {
    fail<RequestError>("ChatOptions::variables must be a dict or none, it is ",
                       jinja::type_name(options.variables), "; put them into a jinja::Dict");
  }
  return template_.render(variables, options.render).segments();
}

TENON_INLINE std::vector<Token> chat_ids(const Tokenizer& tokenizer,
                                         std::span<const TextSegment> segments) {
  std::string text;
  std::vector<PlainRange> plain;
  for (const TextSegment& segment : segments) {
    const std::size_t from = text.size();
    text += segment.text;
    if (!segment.from_template && !segment.text.empty()) plain.push_back({from, text.size()});
  }
  EncodeOptions options{.bos = false, .eos = false, .parse_special = true};
  options.plain = plain;
  std::vector<Token> ids = tokenizer.encode(text, options);
  // What the tokenizer puts in front of every text, unless the template wrote it. Where the start
  // token also ends turns, as in GPT-2, only the first place counts.
  const std::vector<Token> front = tokenizer.encode("", {.eos = false});
  if (front.empty()) return ids;
  const bool twofold = tokenizer.is_end(front[0]);
  const auto end = twofold && !ids.empty() ? ids.begin() + 1 : ids.end();
  if (std::find(ids.begin(), end, front[0]) == end)
    ids.insert(ids.begin(), front.begin(), front.end());
  return ids;
}

TENON_INLINE std::size_t common_prefix(std::span<const Token> cached, std::span<const Token> ids) {
  const std::size_t most = (std::min)(cached.size(), ids.empty() ? 0 : ids.size() - 1);
  const auto difference = std::mismatch(
      cached.begin(), cached.begin() + static_cast<std::ptrdiff_t>(most), ids.begin());
  return static_cast<std::size_t>(difference.first - cached.begin());
}

}  // namespace tenon::inline TENON_ABI
