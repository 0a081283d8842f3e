#pragma once
// Shows generated text step by step: whole characters only, and nothing of a stop string.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/utf8.hpp"
#include "automaton.hpp"
#include "tokenizer.hpp"

namespace tenon::inline TENON_ABI {

struct StreamOptions {
  std::vector<std::string> stop = {};  // texts that end the stream; none of them is ever shown
  std::span<const Token> after = {};   // the prompt's ids; only the last is looked at, and at once
  bool special = false;                // show the names of control and unknown pieces
};

// What push() and finish() return, one after the other, is the decoded text of the pushed ids with
// everything that is not UTF-8 replaced by U+FFFD, up to the first stop string: the one whose last
// byte comes first and, of several that end there, the longest. It does not depend on how the text
// is cut into tokens. Held back are an incomplete character (at most 3 bytes) and the longest tail
// that a stop string starts with. After a prompt that ends in plain text the first piece keeps its
// space; with no prompt, or one that ends in a special piece, it starts a text. One thread drives a
// stream.
class TextStream {
 public:
  // RequestError when a stop string is empty or not UTF-8; TokenizerError when the last id of
  // `after` lies outside the vocabulary.
  explicit TextStream(Tokenizer tokenizer, const StreamOptions& options = {});

  // The text that may be shown now; valid until the next call. Empty once the stream has stopped or
  // finished. TokenizerError, and no change, for an id outside the vocabulary.
  std::string_view push(Token id);
  // Ends the stream and returns what was held back: a character without its end as U+FFFD, and a
  // tail that did not become a stop string.
  std::string_view finish();
  // For each byte of the text that the last push() or finish() returned, which of the pushed ids
  // (the first is 0) it came from; of U+FFFD, the id of the first byte that it stands for. Valid as
  // long.
  std::span<const std::size_t> sources() const { return shown_from_; }
  // Whether a stop string came, and which of StreamOptions::stop it was (-1: none).
  bool stopped() const { return stop_ >= 0; }
  int stop() const { return stop_; }

 private:
  // Appends the text of bytes to text_, and where each byte of it came from to text_from_.
  void repair(std::string_view bytes);
  // Moves text_ to shown_ as far as no stop string can start in it.
  void release();
  // Appends part of held_ to shown_.
  void show(std::size_t from, std::size_t to);

  Tokenizer tokenizer_;
  DecodeOptions decode_;
  DecodeState state_;
  Utf8Repair repair_;
  Automaton stops_;
  std::vector<std::int32_t> stop_at_;  // by state: the stop string that is complete there
  std::vector<std::size_t> stop_sizes_;
  Automaton::State matched_ = Automaton::start;
  std::string held_;  // from held_from_ on: text not shown yet
  std::size_t held_from_ = 0;
  std::string bytes_, text_, shown_;
  std::vector<std::size_t> text_from_, held_sources_, shown_from_;  // the ids of their bytes
  std::vector<std::size_t> incomplete_;  // the ids of the bytes that repair_ holds
  std::size_t pushed_ = 0;               // ids
  int stop_ = -1;
  bool done_ = false;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "text_stream.inl"
#endif
