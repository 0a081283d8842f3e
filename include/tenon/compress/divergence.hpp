#pragma once
// What a change to a model costs on a text: the divergence of its predictions, and both
// perplexities.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "../core/error.hpp"
#include "../model/concepts.hpp"

namespace tenon::inline TENON_ABI {

struct TextDivergence {
  Dim tokens = 0;                        // that were predicted
  double kl = 0;                         // KL(before || after), nats per token
  double nll_before = 0, nll_after = 0;  // negative log-likelihood, nats per token
  double perplexity_before() const { return std::exp(nll_before); }
  double perplexity_after() const { return std::exp(nll_after); }
};

struct DivergenceOptions {
  int window = 255;               // ids of the text in one window
  std::optional<Token> bos = {};  // precedes each window; without it the first id is not predicted
};

namespace detail {

// The log-probabilities of a row of logits [vocab], in double.
inline void log_softmax(const float* logits, std::span<double> out) {
  double highest = -HUGE_VAL, sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(logits[i])) {
      fail<RequestError>("logits to compare must be finite, that of token ", i, " is ", logits[i],
                         "; the weights are damaged or a conversion was given damaged ones");
    }
    out[i] = static_cast<double>(logits[i]);
    highest = (std::max)(highest, out[i]);
  }
  for (const double x : out) sum += std::exp(x - highest);
  const double shift = highest + std::log(sum);
  for (double& x : out) x -= shift;
}

// One sequence of a session, fed part by part; closed at the end.
template <ModelSession S>
class LogitFeed {
 public:
  explicit LogitFeed(S& session) : session_(session), seq_(session.open()) {}
  ~LogitFeed() { session_.close(seq_); }
  LogitFeed(const LogitFeed&) = delete;
  LogitFeed& operator=(const LogitFeed&) = delete;

  // logits: [part, vocab] after each of its tokens.
  void next(std::span<const Token> part, std::vector<float>& logits) {
    const int count = static_cast<int>(part.size());
    every_.resize(part.size());
    for (int i = 0; i < count; ++i) every_[static_cast<std::size_t>(i)] = i;
    logits.resize(part.size() * static_cast<std::size_t>(session_.vocab()));
    session_.forward({{&seq_, 1}, {&count, 1}, part, {}, {}, every_},
                     matrix(logits.data(), count, session_.vocab()), {});
  }

 private:
  S& session_;
  SeqId seq_;
  std::vector<int> every_;
};

}  // namespace detail

// Runs both sessions over `ids` in consecutive windows, each after BOS and from an empty cache, as
// negative_log_likelihood() does, whose means the two likelihoods are. Everything after the logits
// is in double. RequestError: the vocabularies differ, nothing to predict, a window below 1 (2
// without BOS) or logits that are not finite; CapacityError: a window exceeds a context.
template <ModelSession Before, ModelSession After>
TextDivergence divergence(Before& before, After& after, std::span<const Token> ids,
                          const DivergenceOptions& options = {}) {
  const std::size_t lead = options.bos ? 1 : 0;
  const int least = options.bos ? 1 : 2;
  if (before.vocab() != after.vocab()) {
    fail<RequestError>("models to compare must have one vocabulary, they have ", before.vocab(),
                       " and ", after.vocab(), " tokens; compare a model with its own conversion");
  }
  if (options.window < least || ids.size() + lead < 2) {
    fail<RequestError>("a text to compare on must have at least ", least,
                       " ids, and so must its window, it has ", ids.size(), " and the window is ",
                       options.window, "; give more text, 255 is the usual window");
  }
  const auto vocab = static_cast<std::size_t>(before.vocab());
  const Limits limits[] = {before.limits(), after.limits()};
  const auto step =
      static_cast<std::size_t>((std::min)(limits[0].step_tokens, limits[1].step_tokens));
  TextDivergence out;
  std::vector<Token> fed;
  std::vector<float> was, is;
  std::vector<double> log_was(vocab), log_is(vocab);
  for (std::size_t at = 0; at < ids.size(); at += static_cast<std::size_t>(options.window)) {
    const auto text =
        ids.subspan(at, (std::min)(static_cast<std::size_t>(options.window), ids.size() - at));
    fed.clear();
    if (options.bos) fed.push_back(*options.bos);
    fed.insert(fed.end(), text.begin(), text.end() - 1);  // the last id is only predicted
    if (fed.empty()) continue;
    detail::LogitFeed<Before> one(before);
    detail::LogitFeed<After> other(after);
    for (std::size_t first = 0; first < fed.size(); first += step) {
      const auto part =
          std::span<const Token>(fed).subspan(first, (std::min)(step, fed.size() - first));
      one.next(part, was);
      other.next(part, is);
      for (std::size_t t = 0; t < part.size(); ++t) {
        detail::log_softmax(was.data() + t * vocab, log_was);
        detail::log_softmax(is.data() + t * vocab, log_is);
        const Token target = text[first + t + 1 - lead];
        if (target < 0 || static_cast<std::size_t>(target) >= vocab) {
          fail<RequestError>("token ids must be from 0 to ", static_cast<long long>(vocab) - 1,
                             ", this one is ", target,
                             "; encode text with the tokenizer of the same checkpoint");
        }
        double kl = 0;
        for (std::size_t i = 0; i < vocab; ++i) {
          kl = std::fma(std::exp(log_was[i]), log_was[i] - log_is[i], kl);
        }
        out.kl += kl;
        out.nll_before -= log_was[static_cast<std::size_t>(target)];
        out.nll_after -= log_is[static_cast<std::size_t>(target)];
        ++out.tokens;
      }
    }
  }
  for (double* mean : {&out.kl, &out.nll_before, &out.nll_after}) {
    *mean /= static_cast<double>(out.tokens);
  }
  return out;
}

}  // namespace tenon::inline TENON_ABI
