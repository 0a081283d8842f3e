#pragma once
#include "logits.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

TENON_INLINE void fail_logit(Token id, float value) {
  fail<RequestError>("the logit of token ", id,
                     " must be finite, or -inf to exclude the token; it is ", value,
                     "; a weight or a step that edits logits is damaged: check the checkpoint by "
                     "scoring a known text, then the steps one by one");
}

TENON_INLINE void fail_all_excluded(std::size_t vocab) {
  fail<RequestError>("the logits of all ", vocab,
                     " tokens are -inf; at least one token must be allowed; relax the mask or "
                     "grammar that excluded them, or end the sequence here");
}

TENON_INLINE void check_token(Token id, std::size_t vocab) {
  if (id >= 0 && static_cast<std::size_t>(id) < vocab) return;
  fail<RequestError>("token ids must be from 0 to ", static_cast<long long>(vocab) - 1,
                     ", this one is ", id,
                     "; encode text with the tokenizer of the same checkpoint");
}

}  // namespace detail

TENON_INLINE Token argmax(std::span<const float> logits) {
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

TENON_INLINE double log_sum_exp(std::span<const float> logits) {
  const double highest = logits[static_cast<std::size_t>(argmax(logits))];
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - highest);
  return highest + std::log(sum);
}

TENON_INLINE double log_probability(std::span<const float> logits, Token id) {
  detail::check_token(id, logits.size());
  return logits[static_cast<std::size_t>(id)] - log_sum_exp(logits);
}

}  // namespace tenon::inline TENON_ABI
