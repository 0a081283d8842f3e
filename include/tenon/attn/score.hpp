#pragma once
// Hooks on attention logits. A hook sees one logit at a time, after the query scale:
//   float logit(float score, int head, int query_row, int key_row) const
#include <concepts>
#include <tuple>

#include "../core/config.hpp"

namespace tenon::inline TENON_ABI {

template <class S>
concept Score = std::default_initializable<S> && requires(const S s, float x, int i) {
  { s.logit(x, i, i, i) } -> std::same_as<float>;
};

template <class S>
consteval bool explain_score() {
  static_assert(
      requires(const S s, float x) {
        { s.logit(x, 0, 0, 0) } -> std::same_as<float>;
      },
      "tenon: a Score must provide `float logit(float score, int head, int query, int key) const`");
  return true;
}

// Logits as they are; the loop skips the hook altogether.
struct PlainScore {
  constexpr float logit(float score, int, int, int) const { return score; }
};

}  // namespace tenon::inline TENON_ABI
