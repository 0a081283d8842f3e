#pragma once
#include "sampling_steps.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void TopK::operator()(Candidates& candidates) const {
  if (k > 0 && k < candidates.count()) candidates.keep_best(k);
}

TENON_INLINE void TopP::operator()(Candidates& candidates) const {
  if (p < 1) candidates.keep_mass(p);
}

TENON_INLINE void MinP::operator()(Candidates& candidates) const {
  if (p <= 0) return;
  const double lowest = candidates.best().logit + std::log(p);
  candidates.keep_if([lowest](const Candidate& item) { return item.logit >= lowest; });
}

TENON_INLINE void Temperature::operator()(Candidates& candidates) const {
  if (greedy()) {
    candidates.keep_best(1);
    return;
  }
  if (t == 1) return;
  // Relative to the best, which stays at 0 however small t is; the rest may fall off the scale.
  const double highest = candidates.best().logit;
  candidates.transform([this, highest](const Candidate& item) {
    const double scaled = (item.logit - highest) / t;
    return scaled < std::numeric_limits<float>::lowest() ? detail::excluded
                                                         : static_cast<float>(scaled);
  });
}

}  // namespace tenon::inline TENON_ABI
