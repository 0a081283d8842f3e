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

[[noreturn]] void fail_logit(Token id, float value);
[[noreturn]] void fail_all_excluded(std::size_t vocab);
void check_token(Token id, std::size_t vocab);

}  // namespace detail

// The id of the highest logit, the lowest such id on ties.
// logits [vocab]; RequestError for NaN, +inf, or when every value is -inf.
Token argmax(std::span<const float> logits);

// ln of the sum of e^logit, in double, relative to the highest logit so that it cannot overflow.
// logits [vocab]; the errors of argmax().
double log_sum_exp(std::span<const float> logits);

// Natural log of the probability of `id` under the softmax of `logits` [vocab]. Given a model's row
// this is the *raw* stage: before temperature, truncation and any other step. -inf for an excluded
// token; RequestError for an id outside the row, and the errors of argmax().
double log_probability(std::span<const float> logits, Token id);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "logits.inl"
#endif
