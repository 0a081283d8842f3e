#pragma once
// The built-in steps of a sampler chain. A step narrows or reshapes the candidates:
//
//   struct OnlyEven { void operator()(Candidates& c) const; };
//
// with a second parameter `const DrawContext&` if it looks at the sequence. Any such type, lambdas
// included, is a step. Those with a static from(SamplingOptions) can be set up from options; one
// that always keeps the best candidate the best may say so (keeps_best), which makes greedy quick.
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

#include "candidates.hpp"
#include "sampler.hpp"
#include "sampling_options.hpp"

namespace tenon::inline TENON_ABI {

template <class S>
concept SamplingStep = std::copy_constructible<S> &&
    (std::invocable<S&, Candidates&> || std::invocable<S&, Candidates&, const DrawContext&>);

// One sentence for what a type lacks to be a SamplingStep.
template <class S>
consteval bool explain_sampling_step() {
  static_assert(std::copy_constructible<S>,
                "tenon: a sampling step must be copyable, because a sampler is");
  static_assert(
      std::invocable<S&, Candidates&> || std::invocable<S&, Candidates&, const DrawContext&>,
      "tenon: a sampling step is called as step(Candidates&) or step(Candidates&, const "
      "DrawContext&); this type accepts neither");
  return true;
}

// Keeps the k most likely candidates, the lowest ids among equals; k = 0 keeps all.
struct TopK {
  int k = 0;
  static constexpr bool keeps_best = true;

  static TopK from(const SamplingOptions& o) { return {o.top_k}; }
  void check() const { SamplingOptions{.top_k = k}.check(); }
  void operator()(Candidates& candidates) const;
};

// Keeps the shortest list of the likeliest candidates whose probabilities sum to at least p, the
// one that crosses p included: p = 1 keeps all, p = 0 one (nucleus sampling, arXiv 1904.09751).
struct TopP {
  double p = 1;
  static constexpr bool keeps_best = true;

  static TopP from(const SamplingOptions& o) { return {o.top_p}; }
  void check() const { SamplingOptions{.top_p = p}.check(); }
  void operator()(Candidates& candidates) const;
};

// Keeps candidates at least p times as likely as the best: logit >= best + ln p. p = 0 keeps all,
// p = 1 those equal to the best (arXiv 2407.01082).
struct MinP {
  double p = 0;
  static constexpr bool keeps_best = true;

  static MinP from(const SamplingOptions& o) { return {o.min_p}; }
  void check() const { SamplingOptions{.min_p = p}.check(); }
  void operator()(Candidates& candidates) const;
};

// Divides logits by t; t of 0 and below keeps only the best candidate, the lowest id on ties.
struct Temperature {
  double t = 0;
  static constexpr bool keeps_best = true;

  static Temperature from(const SamplingOptions& o) { return {o.temperature}; }
  void check() const { SamplingOptions{.temperature = t}.check(); }
  bool greedy() const { return !(t > 0); }
  void operator()(Candidates& candidates) const;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "sampling_steps.inl"
#endif
