#pragma once
// Conversations: messages to the text that a model was trained on, and that to token ids.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/template.hpp"
#include "tokenizer.hpp"

namespace tenon::inline TENON_ABI {

// One message of a conversation.
struct Message {
  std::string role;  // "system", "user", "assistant", "tool", or what the template knows
  std::string content;
  // Further fields as a dict: tool_calls, tool_call_id, name, reasoning_content... A "content"
  // among them takes the place of the one above: none, or a list of parts.
  jinja::Value fields = {};
};

struct ChatOptions {
  bool add_generation_prompt = true;  // end with what makes the model answer
  jinja::Value tools = {};            // a list of JSON schemas of functions, or none
  jinja::Value documents = {};        // or none
  jinja::Value variables = {};  // a dict of what the template knows besides: enable_thinking...
  jinja::RenderOptions render = {};
};

// What the special tokens are called in text; empty where the vocabulary has none.
struct SpecialTexts {
  std::string bos = {}, eos = {}, unknown = {}, padding = {};
};

// A model's own rule for writing a conversation. Immutable; render() may be called from any thread.
//
// All strings of the messages, tools, documents and variables are text of users, whatever filters
// they go through: it can never become a control token. The exception are the usual names of roles,
// of which some templates compose control tokens.
class ChatTemplate {
 public:
  // The key "tokenizer.chat_template", or of a model with several "tokenizer.chat_template.NAME".
  // LoadError when the model has none, or one that is not supported, with the row and column.
  static ChatTemplate from(const Metadata& metadata, const Tokenizer& tokenizer,
                           std::string_view name = {});
  // A template of the caller's.
  ChatTemplate(std::string_view source, SpecialTexts texts)
      : template_(jinja::Template::parse(source)), texts_(std::move(texts)) {}
  static SpecialTexts texts_of(const Tokenizer& tokenizer);

  // The conversation as text, in stretches of one origin. jinja::TemplateError (a RequestError)
  // with row and column when the template refuses the messages or cannot be rendered with them;
  // nothing is rendered then. RequestError for fields or variables that are no dict.
  std::vector<TextSegment> render(std::span<const Message> messages,
                                  const ChatOptions& options = {}) const;

 private:
  jinja::Template template_;
  SpecialTexts texts_;
};

// The ids of a rendered conversation. Only text of the template becomes control tokens; all text is
// otherwise encoded as one, so the ids are those of Hugging Face wherever no user wrote the text of
// a control token. The start token that the tokenizer puts in front of texts is put there unless
// the template wrote one; no end token is. TokenizerError as encode().
std::vector<Token> chat_ids(const Tokenizer& tokenizer, std::span<const TextSegment> segments);

// How many ids at the start are the same: the rows of a session that a longer or changed
// conversation can go on from. At most one less than `ids` has, so that there is a token to
// process.
std::size_t common_prefix(std::span<const Token> cached, std::span<const Token> ids);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "chat.inl"
#endif
