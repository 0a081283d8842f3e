#pragma once
// Text in, text out: a tokenizer in front of generate() and a text stream behind it.
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../model/concepts.hpp"
#include "../text/text_stream.hpp"
#include "../text/tokenizer.hpp"
#include "generate.hpp"

namespace tenon::inline TENON_ABI {

struct TextOptions {
  GenerateOptions generate{};       // its end tokens are honoured besides the tokenizer's
  EncodeOptions encode{};           // of the prompt
  std::vector<std::string> stop{};  // texts that end generation; none of them is shown
  bool ignore_end = false;          // go on after the tokenizer's own end tokens
  bool special = false;             // show the names of control tokens
};

struct TextGeneration {
  std::string text;      // all that was shown: well-formed UTF-8
  int stop_string = -1;  // the index of the stop string that ended it, if one did
  Generation tokens;     // its finish is `stop` after a stop string too
};

// What generate_text() calls when no callback is given.
struct IgnoreText {
  void operator()(std::string_view) const {}
};

// Continues `prompt` with tokens drawn by `sampler`. on_text(string_view) receives each piece of
// text as soon as it is whole: UTF-8, never empty, nothing of a stop string; it may return false
// to end there. A character that the last token leaves unfinished comes as U+FFFD. The pieces in
// order are TextGeneration::text. Throws what generate(), encode() and TextStream throw.
template <ModelSession S, SamplerRef Draw, class OnText = IgnoreText>
TextGeneration generate_text(S& session, const Tokenizer& tokenizer, std::string_view prompt,
                             Draw&& sampler, const TextOptions& options, OnText&& on_text = {}) {
  const std::vector<Token> ids = tokenizer.encode(prompt, options.encode);
  TextStream stream(tokenizer, {.stop = options.stop, .after = ids, .special = options.special});
  TextGeneration out;
  bool wanted = true;
  const auto show = [&](std::string_view piece) {
    if (piece.empty() || !wanted) return;
    out.text += piece;
    if constexpr (std::is_void_v<std::invoke_result_t<OnText&, std::string_view>>) {
      on_text(piece);
    } else {
      wanted = static_cast<bool>(on_text(piece));
    }
  };

  GenerateOptions request = options.generate;
  request.is_end = [&](Token token) {
    if (!options.ignore_end && tokenizer.is_end(token)) return true;
    return options.generate.is_end && options.generate.is_end(token);
  };
  out.tokens = generate(session, ids, sampler, request, [&](Token token) {
    show(stream.push(token));
    return wanted && !stream.stopped();
  });
  show(stream.finish());
  out.stop_string = stream.stop();
  if (stream.stopped()) out.tokens.finish = FinishReason::stop;
  return out;
}

// The same with the default sampler, set up from options.generate.sampling.
template <ModelSession S, class OnText = IgnoreText>
TextGeneration generate_text(S& session, const Tokenizer& tokenizer, std::string_view prompt,
                             const TextOptions& options, OnText&& on_text = {}) {
  DefaultChain sampler(session.vocab(), options.generate.sampling);
  return generate_text(session, tokenizer, prompt, sampler, options, std::forward<OnText>(on_text));
}

}  // namespace tenon::inline TENON_ABI
