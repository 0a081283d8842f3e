#pragma once
// The autoregressive loop: process a prompt, then draw a token, append it, and so on.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../model/concepts.hpp"
#include "chain.hpp"
#include "logits.hpp"
#include "sampler.hpp"
#include "sampling_options.hpp"
#include "sequence.hpp"

namespace tenon::inline TENON_ABI {

struct GenerateOptions {
  // Tokens to draw at most; without a limit the context ends the sequence. 0: the prompt is
  // processed and nothing is drawn.
  int max_tokens = (std::numeric_limits<int>::max)();
  std::span<const Token> end{};            // any of these ends the sequence
  std::function<bool(Token)> is_end = {};  // so does a token for which this is true
  SamplingOptions sampling{};              // where no sampler is given
  bool log_probabilities = false;          // fill Generation::log_probabilities
  std::stop_token stop{};                  // cancels between steps and inside them
};

// Why a sequence ended.
enum class FinishReason {
  stop,       // an end token was drawn
  length,     // max_tokens were drawn
  context,    // the session has no row left for another token
  callback,   // on_token returned false
  cancelled,  // the stop token was set
};
constexpr std::string_view name_of(FinishReason reason) {
  constexpr std::string_view names[] = {"stop", "length", "context", "callback", "cancelled"};
  const auto i = static_cast<std::size_t>(reason);
  return i < std::size(names) ? names[i] : "unknown";
}

// Wall-clock seconds, the caller's callback included.
struct Timings {
  int prompt_tokens = 0;           // processed
  double prompt_seconds = 0;       // from the call to the logits after the prompt
  double first_token_seconds = 0;  // from the call to the first token, 0 when there was none
  double decode_seconds = 0;       // from the first token to the end
};

struct Generation {
  std::vector<Token> ids;                 // without the end token
  std::vector<double> log_probabilities;  // [ids] natural logs, of the model's raw logits
  FinishReason finish = FinishReason::length;
  // The token drawn last, an end token included. The sequence does not hold it yet: to continue a
  // sequence, give it as the first of the new tokens.
  std::optional<Token> pending;
  Timings timings;
};

// What generate() calls when no callback is given.
struct IgnoreTokens {
  void operator()(Token) const {}
};

namespace detail {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline bool ends(const GenerateOptions& options, Token token) {
  if (std::find(options.end.begin(), options.end.end(), token) != options.end.end()) return true;
  return options.is_end && options.is_end(token);
}

inline void check_drawn(Token token, int vocab) {
  if (token >= 0 && token < vocab) return;
  fail<RequestError>(
      "a sampler must draw an id from 0 to ", vocab - 1, ", it returned ", token,
      "; correct its sample(), which returns the id and not a place among candidates");
}

// False when the callback returns something that says so; a void callback always goes on.
template <class OnToken>
bool goes_on(OnToken& on_token, Token token) {
  if constexpr (std::is_void_v<std::invoke_result_t<OnToken&, Token>>) {
    on_token(token);
    return true;
  } else {
    return static_cast<bool>(on_token(token));
  }
}

template <ModelSession S>
void check_request(const S& session, int cached, std::span<const Token> prompt,
                   const GenerateOptions& options) {
  check_tokens(session, cached, prompt);
  if (options.max_tokens < 0) {
    fail<RequestError>("max_tokens must be 0 or more, it is ", options.max_tokens,
                       "; leave it out to go on until an end token or the end of the context");
  }
}

}  // namespace detail

// Appends `prompt` to the open sequence `seq`, then draws tokens with `sampler` until one of the
// FinishReasons holds; on_token(Token) is called for each and may return false to end there.
// Token i of the sequence is drawn for position i, so one call for n tokens and several that
// continue each other (Generation::pending) draw the same ones. With a full context one more token
// is drawn than there are rows. Nothing is allocated per token.
//
// RequestError: no prompt token, an id outside the vocabulary, options out of range, or logits that
// cannot be drawn from. CapacityError: the prompt does not fit. Both before anything runs, but for
// the logits. The sequence holds the prompt and every id but the last; after a cancel within the
// prompt see prefill(). What the callback throws passes through.
template <ModelSession S, SamplerRef Draw, class OnToken = IgnoreTokens>
Generation generate(S& session, SeqId seq, std::span<const Token> prompt, Draw&& sampler,
                    const GenerateOptions& options, OnToken&& on_token = {}) {
  const auto start = std::chrono::steady_clock::now();
  const int cached = session.length(seq);
  detail::check_request(session, cached, prompt, options);

  const int context = static_cast<Limits>(session.limits()).context;
  const std::size_t room = static_cast<std::size_t>(context - cached) - prompt.size() + 1;
  const std::size_t most = (std::min)(room, static_cast<std::size_t>(options.max_tokens));
  Generation out;
  out.ids.reserve(most);
  if (options.log_probabilities) out.log_probabilities.reserve(most);
  std::vector<Token> past;
  past.reserve(prompt.size() + most);
  past.assign(prompt.begin(), prompt.end());
  std::vector<float> logits(static_cast<std::size_t>(session.vocab()));
  const std::span<float> row(logits);

  const auto finished = [&](FinishReason reason) {
    out.finish = reason;
    if (out.pending)
      out.timings.decode_seconds = detail::seconds_since(start) - out.timings.first_token_seconds;
    return std::move(out);
  };

  if (options.stop.stop_requested()) return finished(FinishReason::cancelled);
  try {
    prefill(session, seq, prompt, most > 0 ? row : std::span<float>{}, options.stop);
  } catch (const Cancelled&) {
    return finished(FinishReason::cancelled);
  }
  out.timings.prompt_tokens = static_cast<int>(prompt.size());
  out.timings.prompt_seconds = detail::seconds_since(start);
  if (most == 0) return finished(FinishReason::length);

  for (;;) {
    const Token token =
        sampler.sample(row, DrawContext{.position = session.length(seq), .past = past});
    detail::check_drawn(token, session.vocab());
    if (!out.pending) out.timings.first_token_seconds = detail::seconds_since(start);
    out.pending = token;
    if (detail::ends(options, token)) return finished(FinishReason::stop);
    out.ids.push_back(token);
    past.push_back(token);
    if (options.log_probabilities) out.log_probabilities.push_back(log_probability(row, token));
    if (!detail::goes_on(on_token, token)) return finished(FinishReason::callback);
    if (out.ids.size() == static_cast<std::size_t>(options.max_tokens))
      return finished(FinishReason::length);
    if (session.length(seq) >= context) return finished(FinishReason::context);
    if (options.stop.stop_requested()) return finished(FinishReason::cancelled);
    try {
      step(session, seq, token, row, options.stop);
    } catch (const Cancelled&) {
      return finished(FinishReason::cancelled);
    }
  }
}

// The same with the default sampler, set up from options.sampling.
template <ModelSession S, class OnToken = IgnoreTokens>
Generation generate(S& session, SeqId seq, std::span<const Token> prompt,
                    const GenerateOptions& options, OnToken&& on_token = {}) {
  DefaultChain sampler(session.vocab(), options.sampling);
  return generate(session, seq, prompt, sampler, options, std::forward<OnToken>(on_token));
}

// The same on a sequence of its own, opened after the checks and closed at the end, exceptions
// included. CapacityError too when the session has no sequence free.
template <ModelSession S, SamplerRef Draw, class OnToken = IgnoreTokens>
Generation generate(S& session, std::span<const Token> prompt, Draw&& sampler,
                    const GenerateOptions& options, OnToken&& on_token = {}) {
  detail::check_request(session, 0, prompt, options);
  const OpenSequence<S> sequence(session);
  return generate(session, sequence.id(), prompt, sampler, options,
                  std::forward<OnToken>(on_token));
}

template <ModelSession S, class OnToken = IgnoreTokens>
Generation generate(S& session, std::span<const Token> prompt, const GenerateOptions& options,
                    OnToken&& on_token = {}) {
  DefaultChain sampler(session.vocab(), options.sampling);
  return generate(session, prompt, sampler, options, std::forward<OnToken>(on_token));
}

}  // namespace tenon::inline TENON_ABI
