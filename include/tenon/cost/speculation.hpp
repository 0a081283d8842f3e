#pragma once
// What guessing ahead with a draft model is worth (arXiv 2211.17192). alpha: the chance that a
// drafted token is accepted; gamma: tokens drafted at a time; c: the time of a draft step over that
// of a step of the target.
#include <algorithm>
#include <span>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI::cost {

// The chance that a token drawn from `draft` is accepted by the rule that keeps the law of
// `target`, 1 - their total variation distance. Both are distributions over one vocabulary.
constexpr double acceptance(std::span<const double> target, std::span<const double> draft) {
  double sum = 0;
  for (std::size_t i = 0; i < target.size() && i < draft.size(); ++i) {
    sum += (std::min)(target[i], draft[i]);
  }
  return sum;
}
// Tokens of one pass of the target, the one it adds itself included:
// (1 - alpha^(gamma + 1)) / (1 - alpha).
constexpr double expected_tokens(double alpha, int gamma) {
  double sum = 1;
  for (int i = 0; i < gamma; ++i) sum = 1 + alpha * sum;
  return sum;
}
// How many times faster than without, while a verified token costs what a step costs.
constexpr double speculative_gain(double alpha, int gamma, double c) {
  return expected_tokens(alpha, gamma) / (gamma * c + 1);
}
// The draft length of the largest gain, at most `most`; 0 when guessing does not pay.
constexpr int best_draft_length(double alpha, double c, int most = 64) {
  int best = 0;
  for (int gamma = 1; gamma <= most; ++gamma) {
    if (speculative_gain(alpha, gamma, c) > speculative_gain(alpha, best, c)) best = gamma;
  }
  return best;
}

}  // namespace tenon::inline TENON_ABI::cost
