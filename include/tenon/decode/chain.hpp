#pragma once
// A sampler is a list of steps in a stated order, then one draw.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "candidates.hpp"
#include "philox.hpp"
#include "sampler.hpp"
#include "sampling_options.hpp"
#include "sampling_steps.hpp"

namespace tenon::inline TENON_ABI {

// Runs the steps in the order of the list, then draws from the softmax of what is left. Allocates
// only when constructed: 24 bytes a vocabulary entry. Two ways to construct one:
//
//   Chain<Temperature, TopP> chain(vocab, SamplingOptions{.temperature = 0.7, .top_p = 0.9});
//   Chain chain(vocab, seed, TopK{40}, OnlyEven{}, Temperature{0.7});
//
// An option whose step is not in the list has no effect: no Temperature is a temperature of 1.
template <class... Steps>
class Chain {
  static_assert((explain_sampling_step<Steps>() && ...));

 public:
  // Steps with a static from(SamplingOptions) read their numbers there, others are default
  // constructed. RequestError for options out of range or a vocabulary below 1.
  Chain(int vocab, const SamplingOptions& options)
      : candidates_(vocab), steps_(made_from<Steps>(options)...), seed_(options.seed) {
    options.check();
  }

  Chain(int vocab, std::uint64_t seed, Steps... steps)
      : candidates_(vocab), steps_(std::move(steps)...), seed_(seed) {
    std::apply([](const auto&... step) { (check_step(step), ...); }, steps_);
  }

  // Takes on the options of another request without allocating; steps without from() are kept.
  void configure(const SamplingOptions& options) {
    options.check();
    std::apply([&](auto&... step) { (reset(step, options), ...); }, steps_);
    seed_ = options.seed;
  }

  // Draws the token at at.position from logits [vocab]; at.seed is ignored. The draw depends on
  // the seed and the position, on nothing drawn before.
  Token sample(std::span<const float> logits, const DrawContext& at) {
    if (greedy() && logits.size() == static_cast<std::size_t>(vocab())) return argmax(logits);
    narrow(logits, at);
    if (candidates_.count() == 1) return candidates_.items().front().id;
    return candidates_.draw(uniform(seed_, at.position));
  }

  // Runs the steps without drawing: what sample() draws from, valid until the next call. Its
  // probabilities() are the *processed* stage, as log_probability() of the row is the raw one.
  Candidates& narrow(std::span<const float> logits, const DrawContext& at) {
    const DrawContext seeded{at.position, at.past, seed_};
    candidates_.load(logits);
    std::apply([&](auto&... step) { (run(step, seeded), ...); }, steps_);
    return candidates_;
  }

  std::uint64_t seed() const { return seed_; }
  int vocab() const { return candidates_.vocab(); }

 private:
  template <class Step>
  static constexpr bool has_options = requires(const SamplingOptions& options) {
    Step::from(options);
  };

  template <class Step>
  static constexpr bool keeps_best = requires {
    requires Step::keeps_best;
  };

  template <class Step>
  static Step made_from(const SamplingOptions& options) {
    if constexpr (has_options<Step>) {
      return Step::from(options);
    } else {
      static_assert(std::is_default_constructible_v<Step>,
                    "tenon: a chain set up from options needs steps with a static "
                    "from(SamplingOptions) or a default constructor; pass the steps as values "
                    "instead: Chain(vocab, seed, steps...)");
      return Step{};
    }
  }
  template <class Step>
  static void check_step(const Step& step) {
    if constexpr (requires { step.check(); }) step.check();
  }
  template <class Step>
  static void reset(Step& step, const SamplingOptions& options) {
    if constexpr (has_options<Step>) step = Step::from(options);
  }
  // Whether the steps can only end at the best token, so that one look at the row is enough.
  bool greedy() const {
    if constexpr ((keeps_best<Steps> && ...)) {
      return std::apply([](const auto&... step) { return (is_greedy(step) || ...); }, steps_);
    } else {
      return false;
    }
  }
  template <class Step>
  static bool is_greedy(const Step& step) {
    if constexpr (requires { step.greedy(); }) return step.greedy();
    return false;
  }
  template <class Step>
  void run(Step& step, const DrawContext& at) {
    if constexpr (std::invocable<Step&, Candidates&, const DrawContext&>) {
      step(candidates_, at);
    } else {
      step(candidates_);
    }
  }

  Candidates candidates_;
  std::tuple<Steps...> steps_;
  std::uint64_t seed_;
};

// Chain(vocab, options) without a list of steps is the default order.
Chain(int, const SamplingOptions&)->Chain<TopK, TopP, MinP, Temperature>;

// The documented default order. Truncation looks at the model's own distribution and temperature
// comes last, so the set of tokens that can appear does not change with the temperature.
// Chain<Temperature, TopK, TopP, MinP> is the other order in common use.
using DefaultChain = Chain<TopK, TopP, MinP, Temperature>;

}  // namespace tenon::inline TENON_ABI
