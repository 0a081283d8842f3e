#pragma once
// The tokens that may still be drawn, and the operations sampling steps are written with.
#include <cstddef>
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
  explicit Candidates(int vocab);

  // Starts over from logits [vocab]; values of -inf do not become candidates.
  // RequestError for another length, for NaN or +inf, and when no value is finite.
  void load(std::span<const float> logits);

  int vocab() const { return static_cast<int>(items_.size()); }
  int count() const { return static_cast<int>(count_); }
  std::span<const Candidate> items() const { return {items_.data(), count_}; }

  // The first in rank order.
  const Candidate& best() const;

  // The n best (1 to all) in rank order; valid until the next call of a member that is not const.
  std::span<const Candidate> ranked(int n);

  // Drops all but the n best; n below 1 keeps one.
  void keep_best(int n);

  // Drops all but the shortest list of the best whose probabilities sum to at least `share`, the
  // one that crosses it included. Expected time O(count), without sorting all: a histogram over the
  // distance to the best finds the bucket where the sum crosses, halving it the candidate.
  void keep_mass(double share);

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
  std::span<const double> probabilities();

  // The candidate at which the running sum of probabilities, in the order of items(), passes u.
  // u in [0, 1); a candidate of probability zero is never chosen.
  Token draw(double u);

 private:
  static constexpr std::size_t heap_selects = 128;  // up to here a heap beats partitioning
  static constexpr std::ptrdiff_t sorted_at_once = 64;
  static constexpr std::size_t buckets = 256;
  static constexpr double buckets_a_nat = 8;  // the last bucket is everything from 32 nats down

  std::size_t clamped(int n) const;
  // selected_ with the n best in front, in no order, and the next one behind them.
  Candidate* select(std::size_t n);
  // Drops what ranks behind `last`.
  void keep_to(const Candidate last);
  void take(std::size_t kept);
  // Fills weights_ with e^(logit - best) and returns their sum, at least 1.
  double weigh();

  std::vector<Candidate> items_;     // [vocab], the first count_ alive
  std::vector<Candidate> selected_;  // [vocab] scratch of cuts by rank
  std::vector<double> weights_;      // [vocab] scratch of draws
  std::size_t count_ = 0;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "candidates.inl"
#endif
