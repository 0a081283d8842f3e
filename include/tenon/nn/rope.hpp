#pragma once
// Position policies: how a layer's rotation follows from a checkpoint. Each reads its own GGUF keys
// and refuses what it does not do.
#include <algorithm>
#include <cmath>
#include <concepts>
#include <numbers>
#include <string_view>
#include <vector>

#include "../core/config.hpp"
#include "bind.hpp"
#include "rotary.hpp"

namespace tenon::inline TENON_ABI {

// rotates:      false for a layer without positions, and then nothing else is asked for.
// rope_dim:     values of a head that turn; dyn: all of them.
// frequencies:  the rotation of a head of that many values; `divisors` is empty or has one value
//               per frequency. ShapeError when rope_dim does not fit the head.
// visit:        optional, names the tensor that holds the divisors (see bind_rotary).
// logit_scale:  optional, a factor on the attention logits besides 1 / sqrt(head_dim).
template <class P>
concept Position = std::default_initializable<P> && requires {
  requires std::convertible_to<decltype(P::rotates), bool>;
} &&(!P::rotates || requires(const P p, Dim head_dim, std::span<const float> divisors) {
  { p.rope_dim } -> std::convertible_to<Dim>;
  { p.frequencies(head_dim, divisors) } -> std::same_as<RotaryFrequencies>;
});

template <class P>
consteval bool explain_position() {
  static_assert(
      requires { bool(P::rotates); },
      "tenon: a Position must state `static constexpr bool rotates`");
  if constexpr (requires { bool(P::rotates); }) {
    static_assert(
        !P::rotates ||
            requires(const P p) {
              { p.rope_dim } -> std::convertible_to<Dim>;
            },
        "tenon: a Position that rotates must have `Dim rope_dim`, the values of a head that turn");
    static_assert(
        !P::rotates ||
            requires(const P p, Dim n, std::span<const float> divisors) {
              { p.frequencies(n, divisors) } -> std::same_as<RotaryFrequencies>;
            },
        "tenon: a Position that rotates must provide `RotaryFrequencies frequencies(Dim head_dim, "
        "std::span<const float> divisors) const`");
  }
  return true;
}

// The factor that a policy puts on attention logits; 1 when it has none.
template <class P>
double logit_scale_of(const P& position) {
  if constexpr (requires { position.logit_scale(); }) {
    return position.logit_scale();
  } else {
    return 1;
  }
}

// Registers a policy's rotation of heads of head_dim values with the visitor that binds a layer,
// divisors of the checkpoint included; returns the index of its angles in LayerStep.
template <class Visitor, class P>
int bind_rotary(Visitor&& visitor, const P& position, Dim head_dim) {
  const Dim turned = position.rope_dim == dyn ? head_dim : position.rope_dim;
  std::vector<float> divisors;
  if constexpr (requires { position.visit(visitor, divisors, Axis{}); }) {
    position.visit(visitor, divisors, Axis{turned / 2, "rope.dimension_count / 2"});
  }
  return visitor.rotary(position.frequencies(head_dim, divisors));
}

// A layer without positions.
struct NoRope {
  static constexpr bool rotates = false;
};

namespace detail {
// A number that must be positive and finite; LoadError otherwise.
constexpr double positive(const ModelConfig& config, std::string_view key, double value) {
  if (value > 0 && std::isfinite(value)) return value;
  fail<LoadError>("metadata key \"", config.architecture, ".", key, "\" must be positive, it is ",
                  value, "; the file is damaged");
}
constexpr double positive_or(const ModelConfig& config, std::string_view key, double otherwise,
                             int layer = -1) {
  return positive(config, key, config.number_or(key, otherwise, layer));
}

inline Dim turned_values(Dim rope_dim, Dim head_dim) {
  const Dim turned = rope_dim == dyn ? head_dim : rope_dim;
  if (turned < 2 || turned % 2 != 0 || turned > head_dim) {
    fail<ShapeError>("rope.dimension_count must be even and at most the head's ", head_dim,
                     " values, it is ", turned, "; the file is damaged or of another model type");
  }
  return turned;
}

// base^(-2i / turned) / divisors[i] for i below turned / 2 (arXiv 2104.09864). A divisor may be
// infinite: that pair does not turn.
inline std::vector<double> plain_radians(double base, Dim turned, std::span<const float> divisors) {
  std::vector<double> radians;
  for (Dim i = 0; i < turned / 2; ++i) {
    double r = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
    if (!divisors.empty()) {
      const auto divisor = static_cast<double>(divisors[static_cast<std::size_t>(i)]);
      if (!(divisor > 0)) {
        fail<LoadError>("the divisors of rotary frequencies must be positive, number ", i, " is ",
                        divisor, "; the file is damaged");
      }
      r /= divisor;
    }
    radians.push_back(r);
  }
  return radians;
}

// YaRN's temperature for a context `factor` times as long (arXiv 2309.00071, section 3.4).
inline double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : std::fma(0.1 * multiplier, std::log(factor), 1.0);
}
}  // namespace detail

// What YaRN's temperature multiplies: sines and cosines, hence only what turns, or, where most of a
// key does not turn (DeepSeek's MLA), all attention logits.
enum class YarnTemperature { rotation, logits };

// YaRN (arXiv 2309.00071) by GGUF's keys: frequencies that turn more than beta_fast times within
// the original context are kept, below beta_slow divided by the factor, between them blended. The
// ends of the ramp are rounded outwards, as in llama.cpp, unless the file's own key yarn_truncate
// says otherwise.
struct YarnScaling {
  bool used = false;
  double original_context = 0;  // tokens
  double beta_fast = 32, beta_slow = 1;
  double log_multiplier = 0;  // 0: not stated; see RopeOf::magnitude
  bool truncate = true;
  bool operator==(const YarnScaling&) const = default;

  static constexpr YarnScaling read(const ModelConfig& config) {
    constexpr std::string_view context = "rope.scaling.original_context_length";
    YarnScaling yarn;
    yarn.used = true;
    yarn.original_context =
        static_cast<double>(config.size(config.has(context) ? context : "context_length"));
    yarn.beta_fast = detail::positive_or(config, "rope.scaling.yarn_beta_fast", 32);
    yarn.beta_slow = detail::positive_or(config, "rope.scaling.yarn_beta_slow", 1);
    yarn.log_multiplier = config.number_or("rope.scaling.yarn_log_multiplier", 0);
    yarn.truncate = config.flag_or("rope.scaling.yarn_truncate", true);
    if (!(yarn.log_multiplier >= 0 && std::isfinite(yarn.log_multiplier))) {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".rope.scaling.yarn_log_multiplier\" must be 0 or positive, it is ",
                      yarn.log_multiplier, "; the file is damaged");
    }
    return yarn;
  }

  // Blends the frequencies [turned / 2] of `base` in place.
  void blend(double base, double factor, Dim turned, std::vector<double>& radians) const {
    const auto dim = static_cast<double>(turned);
    const auto pair_that_turns = [&](double times) {
      return dim * std::log(original_context / (times * 2 * std::numbers::pi)) /
             (2 * std::log(base));
    };
    const double first = pair_that_turns(beta_fast), last = pair_that_turns(beta_slow);
    const double low = (std::max)(0.0, truncate ? std::floor(first) : first);
    const double high = (std::min)(dim - 1, truncate ? std::ceil(last) : last);
    const double length = (std::max)(0.001, high - low);
    for (std::size_t i = 0; i < radians.size(); ++i) {
      const double y = (static_cast<double>(i) - low) / length;
      const double kept = 1 - (std::min)(1.0, (std::max)(0.0, y));
      const double divided = radians[i] / factor;
      radians[i] = std::fma(radians[i], kept, divided * (1 - kept));
    }
  }
};

// RoFormer's rotation (arXiv 2104.09864), theta_i = base^(-2i / rope_dim), over the first rope_dim
// values of a head, with what GGUF files ask for besides: linear scaling, YaRN, an attention
// factor, and the divisors of the tensor `rope_freqs.weight` (Llama 3.1; Gemma 4, where a huge one
// keeps a pair from turning).
template <Pairing P, YarnTemperature T = YarnTemperature::rotation>
struct RopeOf {
  static constexpr bool rotates = true;
  double base = 10000;
  double factor = 1;       // the context is that many times as long as it was trained for
  Dim rope_dim = dyn;      // dyn: the whole head
  double attn_factor = 1;  // on sines and cosines
  YarnScaling yarn{};

  static constexpr RopeOf read(const ModelConfig& config, int layer) {
    RopeOf rope;
    rope.base = detail::positive_or(config, "rope.freq_base", 10000, layer);
    if (config.has("rope.dimension_count"))
      rope.rope_dim = config.size("rope.dimension_count", layer);
    rope.attn_factor = detail::positive_or(config, "rope.scaling.attn_factor", 1);
    // A factor without a type means linear, as in the files of early converters.
    constexpr std::string_view factor = "rope.scaling.factor";
    const std::string_view scaling =
        config.text_or("rope.scaling.type", config.has(factor) ? "linear" : "none");
    if (scaling == "none") return rope;
    if (scaling != "linear" && scaling != "yarn") {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".rope.scaling.type\" must be \"none\", \"linear\" or \"yarn\" for this "
                      "model type, it is \"",
                      printable(scaling),
                      "\"; compose the model with a position policy that implements it");
    }
    rope.factor = detail::positive(config, factor, config.number(factor));
    if (scaling == "yarn") {
      rope.yarn = YarnScaling::read(config);
      if (!(rope.base > 1)) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".rope.freq_base\" must be above 1 with YaRN scaling, it is ", rope.base,
                        "; the file is damaged");
      }
    }
    return rope;
  }

  template <class Visitor>
  void visit(Visitor& visitor, std::vector<float>& divisors, Axis pairs) const {
    visitor.optional_vector("/rope_freqs.weight", divisors, pairs);
    if (!divisors.empty() && factor != 1 && !yarn.used) {
      fail<LoadError>(
          "rope.scaling.factor must be absent or 1 when the tensor rope_freqs.weight scales the "
          "frequencies, it is ",
          factor, "; one of the two would be applied twice; convert the checkpoint again");
    }
  }

  // `divisors` is empty or has one value per frequency.
  RotaryFrequencies frequencies(Dim head_dim, std::span<const float> divisors) const {
    const Dim turned = detail::turned_values(rope_dim, head_dim);
    RotaryFrequencies out{P, detail::plain_radians(base, turned, divisors), magnitude()};
    if (yarn.used) {
      yarn.blend(base, factor, turned, out.radians);
    } else {
      for (double& r : out.radians) r /= factor;
    }
    return out;
  }

  // YaRN's temperature where it applies, once. The checkpoints state it as a quotient m(a) / m(b)
  // on sines and cosines, m(x) = 0.1 x ln(factor) + 1, and m(b)^2 on the logits of DeepSeek's MLA.
  //   rotation: a = 1, b = the file's log multiplier; the logits are left alone.
  //   logits:   the file's log multiplier is 0.1 b and a = b, so that the quotient is 1.
  // Without a log multiplier b is 0, hence m(b) = 1.
  double magnitude() const {
    if (!yarn.used) return attn_factor;
    const bool cancels = T == YarnTemperature::logits && yarn.log_multiplier != 0;
    return cancels ? attn_factor
                   : attn_factor * detail::yarn_magnitude(factor, 1) /
                         detail::yarn_magnitude(factor, yarn.log_multiplier);
  }
  double logit_scale() const requires(T == YarnTemperature::logits) {
    if (!yarn.used) return 1;
    const double m = detail::yarn_magnitude(factor, 10 * yarn.log_multiplier);
    return m * m;
  }
};
using Rope = RopeOf<Pairing::interleaved>;
using RopeHalves = RopeOf<Pairing::halves>;
// The rotation of DeepSeek's MLA.
using Yarn = RopeOf<Pairing::interleaved, YarnTemperature::logits>;

// The rotation of layers with a sliding window where the others have another base (Gemma 3 and 4):
// plain, from `rope.freq_base_swa` and `rope.dimension_count_swa`. What scales the context does not
// concern layers that see only their neighbours.
template <Pairing P>
struct LocalRopeOf {
  static constexpr bool rotates = true;
  double base = 10000;
  Dim rope_dim = dyn;

  static constexpr LocalRopeOf read(const ModelConfig& config, int layer) {
    constexpr std::string_view own = "rope.dimension_count_swa", shared = "rope.dimension_count";
    LocalRopeOf rope;
    rope.base = detail::positive_or(config, "rope.freq_base_swa", 10000, layer);
    if (config.has(own)) {
      rope.rope_dim = config.size(own, layer);
    } else if (config.has(shared)) {
      rope.rope_dim = config.size(shared, layer);
    }
    return rope;
  }
  RotaryFrequencies frequencies(Dim head_dim, std::span<const float>) const {
    const Dim turned = detail::turned_values(rope_dim, head_dim);
    return {P, detail::plain_radians(base, turned, {}), 1};
  }
};
using LocalRope = LocalRopeOf<Pairing::interleaved>;
using LocalRopeHalves = LocalRopeOf<Pairing::halves>;

// Which of LongRoPE's two lists of divisors a model uses. A model is bound to one: keys rotated by
// one do not fit queries rotated by the other.
enum class LongRopeList { by_context_length, within, beyond };

// LongRoPE (arXiv 2402.13753) as Phi-3 uses it: divisors from `rope_factors_short` within the
// original context and from `rope_factors_long` beyond it. by_context_length takes the long ones
// when the file's context_length exceeds its rope.scaling.original_context_length.
template <Pairing P, LongRopeList List = LongRopeList::by_context_length>
struct LongRopeOf {
  static constexpr bool rotates = true;
  double base = 10000;
  Dim rope_dim = dyn;
  double attn_factor = 1;
  bool beyond = List == LongRopeList::beyond;

  // A file of the same family within its original context has no lists and asks for plain Rope.
  static constexpr bool fits(const ModelConfig& config, int) {
    return config.text_or("rope.scaling.type", "") == "longrope" ||
           (config.has("rope.scaling.original_context_length") &&
            config.size("context_length") > config.size("rope.scaling.original_context_length"));
  }
  static constexpr LongRopeOf read(const ModelConfig& config, int layer) {
    LongRopeOf rope;
    rope.base = detail::positive_or(config, "rope.freq_base", 10000, layer);
    if (config.has("rope.dimension_count"))
      rope.rope_dim = config.size("rope.dimension_count", layer);
    rope.attn_factor = detail::positive_or(config, "rope.scaling.attn_factor", 1);
    const std::string_view scaling = config.text_or("rope.scaling.type", "longrope");
    if (scaling != "longrope") {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".rope.scaling.type\" must be \"longrope\" for this model type, it is \"",
                      printable(scaling), "\"; compose the model with Rope");
    }
    if constexpr (List == LongRopeList::by_context_length) {
      rope.beyond =
          config.size("context_length") > config.size("rope.scaling.original_context_length");
    }
    return rope;
  }
  template <class Visitor>
  void visit(Visitor& visitor, std::vector<float>& divisors, Axis pairs) const {
    std::vector<float> unused;
    visitor.vector("/rope_factors_long.weight", beyond ? divisors : unused, pairs);
    visitor.vector("/rope_factors_short.weight", beyond ? unused : divisors, pairs);
  }
  RotaryFrequencies frequencies(Dim head_dim, std::span<const float> divisors) const {
    const Dim turned = detail::turned_values(rope_dim, head_dim);
    return {P, detail::plain_radians(base, turned, divisors), attn_factor};
  }
};
using LongRope = LongRopeOf<Pairing::interleaved>;
using LongRopeHalves = LongRopeOf<Pairing::halves>;

static_assert(Position<NoRope> && Position<Rope> && Position<RopeHalves> && Position<Yarn> &&
              Position<LocalRope> && Position<LongRope>);

}  // namespace tenon::inline TENON_ABI
