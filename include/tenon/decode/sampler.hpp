#pragma once
// What picks the next token: the Sampler concept, and the sampler that always takes the best.
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "../core/types.hpp"
#include "logits.hpp"

namespace tenon::inline TENON_ABI {

// Where a token is being drawn.
struct DrawContext {
  std::int64_t position = 0;      // rows of the sequence before it: its index in the sequence
  std::span<const Token> past{};  // the latest tokens of the sequence, oldest first; may be a tail
  std::uint64_t seed = 0;         // of the sampler, which sets it for the steps it runs
};

// Draws one token from a model's row of logits [vocab]. It answers for one sequence: a copy of a
// sampler continues exactly as the original would, and nothing is shared between samplers.
// Throws RequestError when the row offers nothing to draw from, and never returns an arbitrary id.
template <class S>
concept Sampler = std::copy_constructible<S> &&
    requires(S s, std::span<const float> logits, const DrawContext& at) {
  { s.sample(logits, at) } -> std::same_as<Token>;
};

// A sampler as a function may be given one: an object, a const object or a temporary.
template <class S>
concept SamplerRef = Sampler<std::remove_cvref_t<S>>;

// One sentence for what a type lacks to be a Sampler.
template <class S>
consteval bool explain_sampler() {
  static_assert(
      std::copy_constructible<S>,
      "tenon: a Sampler must be copyable, so that a forked sequence can fork its sampler");
  static_assert(
      requires(S s, std::span<const float> logits, const DrawContext& at) {
        { s.sample(logits, at) } -> std::same_as<Token>;
      },
      "tenon: a Sampler needs a member Token sample(std::span<const float> logits, const "
      "DrawContext& at)");
  return true;
}

// The best token, the lowest id on ties; reads the row once and keeps nothing.
struct Greedy {
  Token sample(std::span<const float> logits, const DrawContext&) const { return argmax(logits); }
};

}  // namespace tenon::inline TENON_ABI
