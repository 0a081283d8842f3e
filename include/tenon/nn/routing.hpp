#pragma once
// Which experts a token goes to, and with what weights. Computed in double precision, one token
// after another's own logits, so that nothing depends on the batch and machines agree.
#include <cmath>
#include <cstdint>
#include <limits>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// How logits become scores; the values are those of GGUF's expert_gating_func.
enum class Gate {
  softmax = 1,            // over all experts
  sigmoid = 2,            // of each
  softmax_of_chosen = 3,  // the logits themselves choose; softmax over those chosen
};
// What a group of experts is worth: its best expert (DeepSeek-V2, arXiv 2405.04434) or the sum of
// its two best (DeepSeek-V3, arXiv 2412.19437).
enum class GroupScore { best, two_best };

// A token goes to the `used` experts of highest rank within the `groups_used` groups of highest
// score (groups == 1: within all); equal ones in ascending order. The rank is the score plus a
// bias, the weight comes from the score alone.
struct Routing {
  Dim experts = 1, used = 1;
  Dim groups = 1, groups_used = 1;  // groups of experts / groups neighbours
  Gate gate = Gate::softmax;
  GroupScore group_score = GroupScore::two_best;
  bool renormalise = true;  // divide the weights by their sum
  double scale = 1;         // then multiply them by this
};

namespace detail {
// The sum that renormalised weights are divided by is at least this, as in llama.cpp.
inline constexpr double least_weight_sum = 0x1p-14;

inline void softmax(double* x, Dim n) {
  double largest = x[0], sum = 0;
  for (Dim i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  for (Dim i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - largest);
  for (Dim i = 0; i < n; ++i) x[i] /= sum;
}
// A NaN goes first, so that it is chosen and reaches the token's output instead of being hidden.
inline double rank_of(double x) {
  return x == x ? x : std::numeric_limits<double>::infinity();
}
inline constexpr double taken = std::numeric_limits<double>::quiet_NaN();
// Takes the largest of ranks [n] that are not taken yet, the first of equal ones; there is one.
inline Dim take_largest(double* ranks, Dim n) {
  Dim best = 0;
  while (ranks[best] != ranks[best]) ++best;
  for (Dim i = best + 1; i < n; ++i) {
    if (ranks[i] > ranks[best]) best = i;
  }
  ranks[best] = taken;
  return best;
}
// Takes the experts of all groups but the chosen ones. worth: scratch [groups].
inline void close_groups(const Routing& routing, double* ranks, double* worth) {
  const Dim size = routing.experts / routing.groups;
  for (Dim g = 0; g < routing.groups; ++g) {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    double first = nothing, second = nothing;
    for (Dim i = g * size; i < (g + 1) * size; ++i) {
      if (ranks[i] > first) {
        second = first;
        first = ranks[i];
      } else if (ranks[i] > second) {
        second = ranks[i];
      }
    }
    const bool two = routing.group_score == GroupScore::two_best && size > 1;
    worth[g] = rank_of(two ? first + second : first);
  }
  for (Dim k = 0; k < routing.groups_used; ++k) take_largest(worth, routing.groups);
  for (Dim i = 0; i < routing.experts; ++i) {
    if (worth[i / size] == worth[i / size]) ranks[i] = taken;
  }
}
}  // namespace detail

// Doubles of scratch that route() needs.
constexpr Dim route_scratch(const Routing& routing) {
  return 2 * routing.experts + routing.groups;
}

// Fills chosen and weights [used] from logits [experts], in ascending order of the experts;
// `bias` [experts] may be null. A logit that is not a number makes the token's weights NaN.
inline void route(const Routing& routing, const float* logits, const float* bias, double* scratch,
                  std::int32_t* chosen, float* weights) {
  const Dim experts = routing.experts, used = routing.used;
  double* scores = scratch;
  double* ranks = scratch + experts;
  for (Dim e = 0; e < experts; ++e) scores[e] = static_cast<double>(logits[e]);
  if (routing.gate == Gate::softmax) detail::softmax(scores, experts);
  if (routing.gate == Gate::sigmoid) {
    for (Dim e = 0; e < experts; ++e) scores[e] = 1 / (1 + std::exp(-scores[e]));
  }
  for (Dim e = 0; e < experts; ++e) {
    ranks[e] =
        detail::rank_of(bias == nullptr ? scores[e] : scores[e] + static_cast<double>(bias[e]));
  }
  if (routing.groups > 1) detail::close_groups(routing, ranks, scratch + 2 * experts);

  for (Dim k = 0; k < used; ++k) {
    const auto expert = static_cast<std::int32_t>(detail::take_largest(ranks, experts));
    Dim at = k;  // insertion into what is sorted so far
    for (; at > 0 && chosen[at - 1] > expert; --at) chosen[at] = chosen[at - 1];
    chosen[at] = expert;
  }
  double* gathered = ranks;  // has served
  for (Dim k = 0; k < used; ++k) gathered[k] = scores[chosen[k]];
  if (routing.gate == Gate::softmax_of_chosen) detail::softmax(gathered, used);
  double divisor = 1;
  if (routing.renormalise) {
    divisor = 0;
    for (Dim k = 0; k < used; ++k) divisor += gathered[k];
    if (divisor < detail::least_weight_sum) divisor = detail::least_weight_sum;
  }
  for (Dim k = 0; k < used; ++k) {
    weights[k] = static_cast<float>(gathered[k] / divisor * routing.scale);
  }
}

}  // namespace tenon::inline TENON_ABI
