#pragma once
// The tokens that may still be drawn, and the operations sampling steps are written with.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "../core/error.hpp"
#include "../core/types.hpp"
#include "logits.hpp"

namespace tenon::inline TENON_ABI {

struct Candidate {
  Token id = 0;
  float logit = 0;
};

// Rank order: higher logits first, equal ones by id. Total, so every cut is deterministic.
constexpr bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// A non-empty set of candidates with finite logits, always in order of ids: what is left after a
// cut does not depend on how the cut was found. All memory is taken by the constructor: 24 bytes a
// vocabulary entry.
class Candidates {
 public:
  explicit Candidates(int vocab) {
    if (vocab < 1) {
      fail<RequestError>("a sampler's vocabulary must be at least 1, it is ", vocab,
                         "; construct it with the vocab() of the session or model");
    }
    items_.resize(static_cast<std::size_t>(vocab));
    selected_.resize(static_cast<std::size_t>(vocab));
    weights_.resize(static_cast<std::size_t>(vocab));
  }

  // Starts over from logits [vocab]; values of -inf do not become candidates.
  // RequestError for another length, for NaN or +inf, and when no value is finite.
  void load(std::span<const float> logits) {
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

  int vocab() const { return static_cast<int>(items_.size()); }
  int count() const { return static_cast<int>(count_); }
  std::span<const Candidate> items() const { return {items_.data(), count_}; }

  // The first in rank order.
  const Candidate& best() const {
    return *std::min_element(items_.data(), items_.data() + count_, ranks_before);
  }

  // The n best (1 to all) in rank order; valid until the next call of a member that is not const.
  std::span<const Candidate> ranked(int n) {
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

  // Drops all but the n best; n below 1 keeps one.
  void keep_best(int n) {
    const std::size_t wanted = clamped(n);
    if (wanted == count_) return;
    if (wanted <= heap_selects) return keep_to(ranked(n).back());
    keep_to(select(wanted - 1)[wanted - 1]);
  }

  // Drops all but the shortest list of the best whose probabilities sum to at least `share`, the
  // one that crosses it included. Expected time O(count), without sorting all: a histogram over the
  // distance to the best finds the bucket where the sum crosses, halving it the candidate.
  void keep_mass(double share) {
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
    Candidate* last =
        std::copy_if(items_.data(), items_.data() + count_, first,
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

  // Drops every candidate for which keep(candidate) is false. RequestError when it is false for
  // all.
  template <class Keep>
  void keep_if(Keep&& keep) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Candidate item = items_[i];
      if (keep(item)) items_[kept++] = item;
    }
    take(kept);
  }

  // Gives every candidate the logit change(candidate), a float; -inf drops it.
  // RequestError for NaN or +inf, and when none is left.
  template <class Change>
  void transform(Change&& change) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Candidate item = items_[i];
      const float logit = change(item);
      if (!detail::is_logit(logit)) detail::fail_logit(item.id, logit);
      if (logit != detail::excluded) items_[kept++] = {item.id, logit};
    }
    take(kept);
  }

  // The softmax of the candidates, in the order of items(); valid until the next call of a member
  // that is not const.
  std::span<const double> probabilities() {
    const double total = weigh();
    for (std::size_t i = 0; i < count_; ++i) weights_[i] /= total;
    return {weights_.data(), count_};
  }

  // The candidate at which the running sum of probabilities, in the order of items(), passes u.
  // u in [0, 1); a candidate of probability zero is never chosen.
  Token draw(double u) {
    const double target = u * weigh();
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      sum += weights_[i];
      if (sum > target) return items_[i].id;
    }
    return best().id;  // only for u outside [0, 1)
  }

 private:
  static constexpr std::size_t heap_selects = 128;  // up to here a heap beats partitioning
  static constexpr std::ptrdiff_t sorted_at_once = 64;
  static constexpr std::size_t buckets = 256;
  static constexpr double buckets_a_nat = 8;  // the last bucket is everything from 32 nats down

  std::size_t clamped(int n) const {
    return static_cast<std::size_t>((std::min)((std::max)(n, 1), count()));
  }
  // selected_ with the n best in front, in no order, and the next one behind them.
  Candidate* select(std::size_t n) {
    Candidate* const first = selected_.data();
    std::copy_n(items_.data(), count_, first);
    std::nth_element(first, first + n, first + count_, ranks_before);
    return first;
  }
  // Drops what ranks behind `last`.
  void keep_to(const Candidate last) {
    keep_if([last](const Candidate& item) { return !ranks_before(last, item); });
  }
  void take(std::size_t kept) {
    if (kept == 0) {
      fail<RequestError>("a sampling step excluded all ", count_,
                         " candidates it was given; at least one must stay; relax the step, or end "
                         "the sequence where nothing is allowed");
    }
    count_ = kept;
  }
  // Fills weights_ with e^(logit - best) and returns their sum, at least 1.
  double weigh() {
    const double highest = best().logit;
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      weights_[i] = std::exp(items_[i].logit - highest);
      sum += weights_[i];
    }
    return sum;
  }

  std::vector<Candidate> items_;     // [vocab], the first count_ alive
  std::vector<Candidate> selected_;  // [vocab] scratch of cuts by rank
  std::vector<double> weights_;      // [vocab] scratch of draws
  std::size_t count_ = 0;
};

}  // namespace tenon::inline TENON_ABI
