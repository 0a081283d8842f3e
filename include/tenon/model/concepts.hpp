#pragma once
// What samplers, generators, scorers and schedulers are written against.
#include <concepts>
#include <stop_token>

#include "../core/batch.hpp"
#include "../tensor/view.hpp"

namespace tenon::inline TENON_ABI {

// A session owns what changes while a model runs: the cached sequences and the scratch of a step.
// One thread drives a session. Calls throw a tenon::Error and then leave every sequence as it was.
template <class S>
concept ModelSession = requires(S s, const S c, SeqId seq, int n, const Batch& batch,
                                MatView<float> logits, std::stop_token stop) {
  { c.vocab() } -> std::same_as<int>;
  { c.limits() } -> std::convertible_to<Limits>;
  { c.length(seq) } -> std::same_as<int>;  // rows cached
  { s.open() } -> std::same_as<SeqId>;     // an empty sequence; CapacityError when none is free
  { s.fork(seq) } -> std::same_as<SeqId>;  // a copy that diverges from here
  s.truncate(seq, n);                      // forgets rows n and later
  s.close(seq);
  // Appends the batch's tokens; row i of logits [want, vocab] is for token want[i].
  s.forward(batch, logits, stop);
};

// Bound weights: immutable, cheap to copy (a shared handle), safe to use from any thread.
template <class M>
concept Model = std::copyable<M> && requires(const M m, const Limits& limits) {
  requires ModelSession<typename M::Session>;
  { m.vocab() } -> std::same_as<int>;
  { m.open(limits) } -> std::same_as<typename M::Session>;
};

}  // namespace tenon::inline TENON_ABI
