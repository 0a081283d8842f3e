#pragma once
// The score hooks that models use.
#include <bit>
#include <cmath>
#include <vector>

#include "score.hpp"

namespace tenon::inline TENON_ABI {

// cap * tanh(score / cap) (Gemma 2, arXiv 2408.00118).
struct SoftCap {
  static constexpr bool by_distance = false;
  float cap = 1;

  static constexpr SoftCap read(const ModelConfig& config, int layer) {
    const double cap = config.number("attn_logit_softcapping", layer);
    if (!(cap > 1e-30 && cap < 1e30)) {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".attn_logit_softcapping\" must be positive for this model type, it is ", cap,
                      "; compose the model without SoftCap");
    }
    return {static_cast<float>(cap)};
  }
  float logit(float score, int, int, int) const { return cap * std::tanh(score / cap); }
  void logits(const RowOps& ops, float* scores, std::uint64_t, int, int, int) const {
    ops.soft_cap(scores, key_tile, cap);
  }
};

// score - slope of the head * distance (arXiv 2108.12409). Slopes are 2^(-bias h / n) for the first
// n heads, n the largest power of two that fits; the others lie between them.
struct Alibi {
  double largest_bias = 8;
  int heads = 1;

  static constexpr Alibi read(const ModelConfig& config, int layer) {
    const double largest = config.number_or("attention.max_alibi_bias", 8, layer);
    if (!(largest > 0 && largest < 1024)) {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".attention.max_alibi_bias\" must be positive and below 1024 for this model "
                      "type, it is ",
                      largest, "; compose the model without Alibi");
    }
    return {config.number_or("attention.max_alibi_bias", 8, layer),
            static_cast<int>(config.size("attention.head_count", layer))};
  }
  float slope(int head) const {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
    const double exponent = head < power ? largest_bias * (head + 1) / power
                                         : largest_bias * (2 * (head - power) + 1) / (2 * power);
    return static_cast<float>(std::exp2(-exponent));
  }
  float logit(float score, int head, int query, int key) const {
    return std::fma(-slope(head), static_cast<float>(query - key), score);
  }
  void logits(const RowOps&, float* scores, std::uint64_t keep, int head, int query,
              int first) const {
    const float each = slope(head);
    for (; keep != 0; keep &= keep - 1) {
      const int k = __builtin_ctzll(keep);
      scores[k] = std::fma(-each, static_cast<float>(query - first - k), scores[k]);
    }
  }
};

// One learned logit per head that takes part in the softmax and has no value (gpt-oss); 0 for all
// is "softmax off by one".
struct LearnedSinks {
  std::vector<float> learned;  // [heads]

  float sink(int head) const { return learned[static_cast<std::size_t>(head)]; }
  template <class Visitor, class AxisType>
  void visit(Visitor&& visitor, AxisType heads) {
    visitor.vector("attn_sinks", learned, heads);
  }
};

// Query-key products as they are, without the usual 1 / sqrt(head_dim) (Gemma 4).
struct UnitScale {
  constexpr float scale(float) const { return 1; }
};

}  // namespace tenon::inline TENON_ABI
