#pragma once
// Reading one row of logits: the best token, the log-probability of a token, and the one place that
// says what a row must be: finite values, or -inf for a token that is excluded, at least one
// finite.
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline constexpr float excluded = -std::numeric_limits<float>::infinity();

// False for NaN and +inf.
constexpr bool is_logit(float x) {
  return x <= (std::numeric_limits<float>::max)();
}

[[noreturn]] inline void fail_logit(Token id, float value) {
  fail<RequestError>("the logit of token ", id,
                     " must be finite, or -inf to exclude the token; it is ", value,
                     "; a weight or a step that edits logits is damaged: check the checkpoint by "
                     "scoring a known text, then the steps one by one");
}
[[noreturn]] inline void fail_all_excluded(std::size_t vocab) {
  fail<RequestError>("the logits of all ", vocab,
                     " tokens are -inf; at least one token must be allowed; relax the mask or "
                     "grammar that excluded them, or end the sequence here");
}
inline void check_token(Token id, std::size_t vocab) {
  if (id >= 0 && static_cast<std::size_t>(id) < vocab) return;
  fail<RequestError>("token ids must be from 0 to ", static_cast<long long>(vocab) - 1,
                     ", this one is ", id,
                     "; encode text with the tokenizer of the same checkpoint");
}

}  // namespace detail

// The id of the highest logit, the lowest such id on ties.
// logits [vocab]; RequestError for NaN, +inf, or when every value is -inf.
inline Token argmax(std::span<const float> logits) {
  std::size_t best = 0;
  float highest = detail::excluded;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!detail::is_logit(logits[i])) detail::fail_logit(static_cast<Token>(i), logits[i]);
    if (logits[i] > highest) {
      highest = logits[i];
      best = i;
    }
  }
  if (highest == detail::excluded) detail::fail_all_excluded(logits.size());
  return static_cast<Token>(best);
}

// ln of the sum of e^logit, in double, relative to the highest logit so that it cannot overflow.
// logits [vocab]; the errors of argmax().
inline double log_sum_exp(std::span<const float> logits) {
  const double highest = logits[static_cast<std::size_t>(argmax(logits))];
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - highest);
  return highest + std::log(sum);
}

// Natural log of the probability of `id` under the softmax of `logits` [vocab]. Given a model's row
// this is the *raw* stage: before temperature, truncation and any other step. -inf for an excluded
// token; RequestError for an id outside the row, and the errors of argmax().
inline double log_probability(std::span<const float> logits, Token id) {
  detail::check_token(id, logits.size());
  return logits[static_cast<std::size_t>(id)] - log_sum_exp(logits);
}

}  // namespace tenon::inline TENON_ABI
