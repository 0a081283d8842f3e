#pragma once
// What a score hook is: a change of attention logits between the query-key product and the softmax.
// The hooks themselves are in score_hooks.hpp.
#include <concepts>
#include <tuple>

#include "../core/config.hpp"
#include "../kernels/attention_ops.hpp"
#include "../kernels/row_ops.hpp"

namespace tenon::inline TENON_ABI {

// A hook has at least one of
//   float logit(float score, int head, int query, int key) const   one logit (rows of the cache)
//   float scale(float scale) const      the factor on query-key products, given the usual one
//   float sink(int head) const          a logit that joins the denominator and has no value
// and optionally
//   void logits(const RowOps&, float* scores, uint64 keep, int head, int query, int first) const
//        the logits of 64 keys at once, in place of logit()
//   void visit(visitor, Axis heads)     loads what it needs
//   static constexpr bool by_distance   whether logit() depends on the rows it is given; a hook
//   that
//                                       says false works on token trees too
template <class S>
concept ScalesQueries = requires(const S s, float x) {
  { s.scale(x) } -> std::same_as<float>;
};
template <class S>
concept ChangesLogits = requires(const S s, float x, int i) {
  { s.logit(x, i, i, i) } -> std::same_as<float>;
};
template <class S>
concept HasSink = requires(const S s, int i) {
  { s.sink(i) } -> std::same_as<float>;
};
template <class S>
concept Score = std::default_initializable<S> &&
    (ScalesQueries<S> || ChangesLogits<S> || HasSink<S>);

template <class S>
consteval bool explain_score() {
  static_assert(ScalesQueries<S> || ChangesLogits<S> || HasSink<S>,
                "tenon: a Score must provide `float logit(float score, int head, int query, int "
                "key) const`, `float scale(float) const` or `float sink(int head) const`");
  return true;
}

template <class S>
inline constexpr bool depends_on_rows = ChangesLogits<S> && !requires {
  requires !S::by_distance;
};

// A token of a tree does not stand at the row where it is stored.
template <class M, class S>
consteval bool explain_tree_score() {
  if constexpr (requires { requires M::trees; }) {
    static_assert(!depends_on_rows<S>,
                  "tenon: a Score that depends on the distance of rows does not work on token "
                  "trees; one that does not says `static constexpr bool by_distance = false`");
  }
  return true;
}

// Logits as they are.
struct PlainScore {
  constexpr float scale(float usual) const { return usual; }
};

// The logits of keys first.. of one query, those whose bit in `keep` is set.
template <ChangesLogits S>
void change_logits(const S& score, const RowOps& ops, float* scores, std::uint64_t keep, int head,
                   int query, int first) {
  if constexpr (requires { score.logits(ops, scores, keep, head, query, first); }) {
    score.logits(ops, scores, keep, head, query, first);
  } else {
    for (std::uint64_t left = keep; left != 0; left &= left - 1) {
      const int k = __builtin_ctzll(left);
      scores[k] = score.logit(scores[k], head, query, first + k);
    }
  }
}

// Several hooks, applied from left to right. At most one may have a sink.
template <Score... S>
struct Scores {
  static_assert((int(HasSink<S>) + ... + 0) <= 1,
                "tenon: Scores takes at most one hook with a sink");
  static constexpr bool by_distance = (depends_on_rows<S> || ...);
  std::tuple<S...> hooks;

  static Scores read(const ModelConfig& config, int layer) {
    return {{read_policy<S>(config, layer)...}};
  }
  constexpr float scale(float usual) const {
    const auto one = [&](const auto& hook) {
      if constexpr (requires { hook.scale(usual); }) usual = hook.scale(usual);
    };
    std::apply([&](const S&... hook) { (one(hook), ...); }, hooks);
    return usual;
  }
  float logit(float score, int head, int query, int key) const requires(ChangesLogits<S> || ...) {
    const auto one = [&](const auto& hook) {
      if constexpr (requires { hook.logit(score, head, query, key); }) {
        score = hook.logit(score, head, query, key);
      }
    };
    std::apply([&](const S&... hook) { (one(hook), ...); }, hooks);
    return score;
  }
  void logits(const RowOps& ops, float* scores, std::uint64_t keep, int head, int query,
              int first) const requires(ChangesLogits<S> || ...) {
    const auto one = [&]<class H>(const H& hook) {
      if constexpr (ChangesLogits<H>) change_logits(hook, ops, scores, keep, head, query, first);
    };
    std::apply([&](const S&... hook) { (one(hook), ...); }, hooks);
  }
  float sink(int head) const requires(HasSink<S> || ...) {
    float logit = 0;
    const auto one = [&](const auto& hook) {
      if constexpr (requires { hook.sink(head); }) logit = hook.sink(head);
    };
    std::apply([&](const S&... hook) { (one(hook), ...); }, hooks);
    return logit;
  }
  template <class Visitor, class AxisType>
  void visit(Visitor&& visitor, AxisType heads) {
    const auto one = [&](auto& hook) {
      if constexpr (requires { hook.visit(visitor, heads); }) hook.visit(visitor, heads);
    };
    std::apply([&](S&... hook) { (one(hook), ...); }, hooks);
  }
};

}  // namespace tenon::inline TENON_ABI
