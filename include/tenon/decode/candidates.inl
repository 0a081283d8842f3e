#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "candidates.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE Candidates::Candidates(int vocab) {
  if (vocab < 1) {
    fail<RequestError>("a sampler's vocabulary must be at least 1, it is ", vocab,
                       "; construct it with the vocab() of the session or model");
  }
  items_.resize(static_cast<std::size_t>(vocab));
  selected_.resize(static_cast<std::size_t>(vocab));
  weights_.resize(static_cast<std::size_t>(vocab));
}

TENON_INLINE void Candidates::load(std::span<const float> logits) {
  if (logits.size() != items_.size()) {
    fail<RequestError>("the row of logits must have ", items_.size(),
                       " values, the vocabulary of this sampler; it has ", logits.size(),
                       "; construct the sampler with the vocab() of the session");
  }
  count_ = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i];
    if (!detail::is_logit(x)) detail::fail_logit(static_cast<Token>(i), x);
    if (x != detail::excluded) items_[count_++] = {static_cast<Token>(i), x};
  }
  if (count_ == 0) detail::fail_all_excluded(logits.size());
}

TENON_INLINE const Candidate& Candidates::best() const {
  return *std::min_element(items_.data(), items_.data() + count_, ranks_before);
}

TENON_INLINE std::span<const Candidate> Candidates::ranked(int n) {
  const std::size_t wanted = clamped(n);
  if (wanted <= heap_selects) {
    std::partial_sort_copy(items_.data(), items_.data() + count_, selected_.data(),
                           selected_.data() + wanted, ranks_before);
  } else {
    Candidate* const first = select(wanted);
    std::sort(first, first + wanted, ranks_before);
  }
  return {selected_.data(), wanted};
}

TENON_INLINE void Candidates::keep_best(int n) {
  const std::size_t wanted = clamped(n);
  if (wanted == count_) return;
  if (wanted <= heap_selects) return keep_to(ranked(n).back());
  keep_to(select(wanted - 1)[wanted - 1]);
}

TENON_INLINE void Candidates::keep_mass(double share) {
  const double highest = best().logit;
  const auto bucket_of = [highest](const Candidate& item) {
    const double at = (highest - item.logit) * buckets_a_nat;
    return static_cast<std::size_t>((std::min)(at, buckets - 1.0));
  };
  const auto mass = [highest](const Candidate* from, const Candidate* to) {
    double sum = 0;
    for (; from != to; ++from) sum += std::exp(from->logit - highest);
    return sum;
  };
  std::array<double, buckets> masses{};
  for (const Candidate& item : items()) masses[bucket_of(item)] += mass(&item, &item + 1);
  double wanted = share * std::accumulate(masses.begin(), masses.end(), 0.0);
  std::size_t crossed = 0;
  while (crossed + 1 < buckets && masses[crossed] < wanted) wanted -= masses[crossed++];

  Candidate* first = selected_.data();
  Candidate* last = std::copy_if(items_.data(), items_.data() + count_, first,
                                 [&](const Candidate& item) { return bucket_of(item) == crossed; });
  if (first == last) return;  // rounding carried the sum past every candidate
  while (last - first > sorted_at_once) {
    Candidate* const middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, ranks_before);
    const double upper = mass(first, middle);
    if (upper >= wanted) {
      last = middle;
    } else {
      wanted -= upper;
      first = middle;
    }
  }
  std::sort(first, last, ranks_before);
  for (double sum = 0; first + 1 != last; ++first) {
    sum += mass(first, first + 1);
    if (sum >= wanted) break;
  }
  keep_to(*first);
}

TENON_INLINE std::span<const double> Candidates::probabilities() {
  const double total = weigh();
  for (std::size_t i = 0; i < count_; ++i) weights_[i] /= total;
  return {weights_.data(), count_};
}

TENON_INLINE Token Candidates::draw(double u) {
  const double target = u * weigh();
  double sum = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    sum += weights_[i];
    if (sum > target) return items_[i].id;
  }
  return best().id;  // only for u outside [0, 1)
}

TENON_INLINE std::size_t Candidates::clamped(int n) const {
  return static_cast<std::size_t>((std::min)((std::max)(n, 1), count()));
}

TENON_INLINE Candidate* Candidates::select(std::size_t n) {
  Candidate* const first = selected_.data();
  std::copy_n(items_.data(), count_, first);
  std::nth_element(first, first + n, first + count_, ranks_before);
  return first;
}

TENON_INLINE void Candidates::keep_to(const Candidate last) {
  keep_if([last](const Candidate& item) { return !ranks_before(last, item); });
}

TENON_INLINE void Candidates::take(std::size_t kept) {
  if (kept == 0) {
    fail<RequestError>("a sampling step excluded all ", count_,
                       " candidates it was given; at least one must stay; relax the step, or end "
                       "the sequence where nothing is allowed");
  }
  count_ = kept;
}

TENON_INLINE double Candidates::weigh() {
  const double highest = best().logit;
  double sum = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    weights_[i] = std::exp(items_[i].logit - highest);
    sum += weights_[i];
  }
  return sum;
}

}  // namespace tenon::inline TENON_ABI
