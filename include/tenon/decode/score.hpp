#pragma once
// What a model thinks of a given text: its logits at every position, and the negative
// log-likelihood of the text in windows.
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "../core/error.hpp"
#include "../core/types.hpp"
#include "../model/concepts.hpp"
#include "logits.hpp"
#include "sequence.hpp"

namespace tenon::inline TENON_ABI {

// Feeds `tokens` to an empty sequence of its own, `chunk` at a time, and calls fn(i, row) for every
// i in order: row, a span<const float> [vocab], is what the model expects after tokens[i]. The rows
// do not depend on chunk, which bounds the memory: chunk * vocab floats; 0 means step_tokens.
// RequestError and CapacityError as for prefill(), before anything runs; RequestError for a chunk
// outside 0 to step_tokens; Cancelled when `stop` is set. The sequence is closed in every case.
template <ModelSession S, class Fn>
requires std::invocable<Fn&, Dim, std::span<const float>>
void score(S& session, std::span<const Token> tokens, int chunk, Fn&& fn,
           std::stop_token stop = {}) {
  const std::size_t most = detail::step_tokens(session);
  if (chunk < 0 || static_cast<std::size_t>(chunk) > most) {
    fail<RequestError>("the chunk to score by must be from 1 to the session's step_tokens of ",
                       most, ", or 0 for that number; it is ", chunk,
                       "; lower it or open the session with a larger Limits::step_tokens");
  }
  detail::check_tokens(session, 0, tokens);

  const std::size_t rows =
      (std::min)(chunk == 0 ? most : static_cast<std::size_t>(chunk), tokens.size());
  const std::size_t vocab = static_cast<std::size_t>(session.vocab());
  std::vector<int> every(rows);
  std::iota(every.begin(), every.end(), 0);
  std::vector<float> logits(rows * vocab);
  const OpenSequence<S> sequence(session);
  for (std::size_t at = 0; at < tokens.size(); at += rows) {
    if (stop.stop_requested()) {
      fail<Cancelled>("scoring must see all ", tokens.size(),
                      " tokens, its stop token was set after ", at,
                      "; call it again to start over");
    }
    const std::span<const Token> part = tokens.subspan(at, (std::min)(rows, tokens.size() - at));
    detail::forward_one(session, sequence.id(), part,
                        std::span<const int>(every).first(part.size()), logits.data(), stop);
    for (std::size_t i = 0; i < part.size(); ++i) {
      fn(static_cast<Dim>(at + i), std::span<const float>(logits.data() + i * vocab, vocab));
    }
  }
}

struct NllOptions {
  int window = 255;               // ids of the text in one window
  std::optional<Token> bos = {};  // precedes each window; without it the first id is not scored
  int chunk = 0;                  // as in score()
  std::stop_token stop = {};
};

struct NllSum {
  double sum = 0;  // natural log
  Dim tokens = 0;  // that were scored
  double mean() const { return sum / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean()); }
};

// The negative log-likelihood of a text: consecutive non-overlapping windows of `window` ids, each
// preceded by BOS and evaluated from an empty cache. fn(i, nll) is called for each scored ids[i],
// in order; nll is -ln p of the raw logits, in double, +inf where the model excludes the id.
// RequestError: no ids, an id outside the vocabulary, a window below 1 (2 without BOS), so that
// nothing would be scored; CapacityError: a window does not fit the context.
template <ModelSession S, class Fn>
requires std::invocable<Fn&, Dim, double> NllSum negative_log_likelihood(S& session,
                                                                         std::span<const Token> ids,
                                                                         const NllOptions& options,
                                                                         Fn&& fn) {
  const std::size_t lead = options.bos ? 1 : 0;
  const int least = options.bos ? 1 : 2;
  if (options.window < least) {
    fail<RequestError>("the window must hold at least ", least, " ids",
                       options.bos ? "" : " without a BOS", " to score one, it is ", options.window,
                       "; 255 is usual");
  }
  if (ids.size() + lead < 2) {
    fail<RequestError>("the text must have at least ", least, " ids",
                       options.bos ? "" : " without a BOS", " to score one, it has ", ids.size(),
                       "; give more text");
  }
  const int vocab = session.vocab();
  for (const Token id : ids) detail::check_token(id, static_cast<std::size_t>(vocab));

  NllSum out;
  std::vector<Token> window;
  for (std::size_t at = 0; at < ids.size(); at += static_cast<std::size_t>(options.window)) {
    const std::size_t count = (std::min)(static_cast<std::size_t>(options.window), ids.size() - at);
    const std::span<const Token> text = ids.subspan(at, count);
    // The last id is only predicted, so it is not fed.
    window.clear();
    if (options.bos) window.push_back(*options.bos);
    window.insert(window.end(), text.begin(), text.end() - 1);
    if (window.empty()) continue;  // one id alone, without BOS
    score(
        session, window, options.chunk,
        [&](Dim i, std::span<const float> row) {
          const std::size_t target = static_cast<std::size_t>(i) + 1 - lead;
          const double nll = -log_probability(row, text[target]);
          fn(static_cast<Dim>(at + target), nll);
          out.sum += nll;
          ++out.tokens;
        },
        options.stop);
  }
  return out;
}

template <ModelSession S>
NllSum negative_log_likelihood(S& session, std::span<const Token> ids, const NllOptions& options) {
  return negative_log_likelihood(session, ids, options, [](Dim, double) {});
}

}  // namespace tenon::inline TENON_ABI
