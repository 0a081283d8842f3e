#pragma once
#include <algorithm>

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
  // Few runs of a row have a new best: most are only looked at, without a branch for each value.
  constexpr std::size_t run = 64;
  std::size_t best = 0;
  float highest = detail::excluded;
  for (std::size_t first = 0; first < logits.size(); first += run) {
    const auto some = logits.subspan(first, (std::min)(run, logits.size() - first));
    unsigned notable = 0;
    for (const float x : some) {
      notable |= static_cast<unsigned>(x > highest) | static_cast<unsigned>(!detail::is_logit(x));
    }
    if (notable == 0) continue;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!detail::is_logit(some[i])) detail::fail_logit(static_cast<Token>(first + i), some[i]);
      if (some[i] > highest) {
        highest = some[i];
        best = first + i;
      }
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
