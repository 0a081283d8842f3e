#pragma once
// Feed-forward layers.
#include <algorithm>
#include <cmath>
#include <concepts>

#include "../core/config.hpp"
#include "../core/layer_numbers.hpp"
#include "../kernels/cpu.hpp"
#include "../kernels/packed.hpp"
#include "bind.hpp"

namespace tenon::inline TENON_ABI {

// An activation is a type with `static float f(float)`, used as f(gate) * up, or with `static float
// gated(float gate, float up)`; one that the kernels know also names, by `gate(ops)`, the leaf that
// computes it in place.
struct Silu {
  static float f(float x) { return x / (1 + std::exp(-x)); }
  static auto gate(const RowOps& ops) { return ops.silu_gate; }
};
// GELU in its tanh form (arXiv 1606.08415).
struct Gelu {
  static float f(float x) {
    const float u = 0.797884561f * std::fma(0.044715f * x * x, x, x);
    return 0.5f * x * (1 + std::tanh(u));
  }
  static auto gate(const RowOps& ops) { return ops.gelu_gate; }
};
// The SwiGLU of gpt-oss: gate at most 7, up within -7 and 7; gate sigmoid(1.702 gate) (up + 1).
struct ClampedSilu {
  static float gated(float gate, float up) {
    const float g = (std::min)(gate, 7.0f);
    const float u = (std::max)((std::min)(up, 7.0f), -7.0f);
    return g / (1 + std::exp(-1.702f * g)) * (u + 1);
  }
  static auto gate(const RowOps& ops) { return ops.clamped_swiglu_gate; }
};

template <class A>
consteval bool explain_activation() {
  static_assert(
      requires(float x) {
        { A::f(x) } -> std::convertible_to<float>;
      } ||
          requires(float x) {
            { A::gated(x, x) } -> std::convertible_to<float>;
          },
      "tenon: an activation must provide `static float f(float)` or `static float gated(float "
      "gate, "
      "float up)`");
  return true;
}

// gate [hidden] = the activation of gate and up [hidden].
template <class Activation>
void activate(const RowOps& ops, float* gate, const float* up, Dim hidden) {
  if constexpr (requires { Activation::gate(ops); }) {
    Activation::gate(ops)(gate, up, hidden);
  } else if constexpr (requires { Activation::gated(*gate, *up); }) {
    for (Dim i = 0; i < hidden; ++i) gate[i] = Activation::gated(gate[i], up[i]);
  } else {
    for (Dim i = 0; i < hidden; ++i) gate[i] = Activation::f(gate[i]) * up[i];
  }
}

struct MlpSpec {
  Dim hidden = dyn;    // feed_forward_length
  bool fused = false;  // gate and up are one tensor, ffn_up, the gate first (Phi-3)
};

// down(f(gate(x)) * up(x)) (arXiv 2002.05202).
template <class Activation, MlpSpec S = MlpSpec{}>
struct GatedMlp {
  static_assert(explain_activation<Activation>());
  struct Config {
    Dim hidden;
    static constexpr Config read(const ModelConfig& config, int layer) {
      return {config.size("feed_forward_length", layer)};
    }
  };
  static constexpr std::array<Pin, 1> pins(const ModelConfig& config, int layer) {
    return {Pin{"feed_forward_length", S.hidden, config.size("feed_forward_length", layer)}};
  }

  static constexpr FeedForwardNumbers numbers(const Config& c, Dim width) {
    return mlp_numbers(width, c.hidden);
  }

  template <class Formats>
  struct Weights {
    Config config{};
    PackedMatrix<Formats> gate, up, down;  // [hidden, width] x 2, [width, hidden]

    // `suffix` and `origin`: of the tensors' names and of the hidden size, for one that is a part
    // of another layer.
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, std::string_view suffix = {},
               std::string_view origin = "feed_forward_length") {
      const Axis hidden{config.hidden, origin};
      if constexpr (S.fused) {
        const Slice half{{2 * hidden.size, "2 x feed_forward_length"}, 0, hidden.size, false};
        gate = half_of(visitor, suffix, half, width);
        up = half_of(visitor, suffix, {half.period, hidden.size, hidden.size, false}, width);
      } else {
        visitor.matrix(message("ffn_gate", suffix), gate, hidden, width);
        visitor.matrix(message("ffn_up", suffix), up, hidden, width);
      }
      visitor.matrix(message("ffn_down", suffix), down, width, hidden);
    }

   private:
    template <class Visitor>
    static PackedMatrix<Formats> half_of(Visitor&& visitor, std::string_view suffix,
                                         const Slice& slice, Axis width) {
      std::vector<PackedMatrix<Formats>> half;
      visitor.slices(message("ffn_up", suffix), half, {1, "1"}, slice, width);
      return std::move(half[0]);
    }
  };

  // x, y: [tokens, width]; adds to y when `accumulate`.
  template <class Formats>
  static void forward(Cpu& cpu, const Weights<Formats>& weights, MatView<const float> x,
                      MatView<float> y, bool accumulate) {
    const auto frame = cpu.workspace().frame();
    const Dim tokens = x.extent(0);
    const Dim hidden = pinned_or<S.hidden>(weights.config.hidden);
    const auto gate = cpu.take_matrix(tokens, hidden);
    const auto up = cpu.take_matrix(tokens, hidden);
    cpu.linear<Formats>(x, {{&weights.gate, gate}, {&weights.up, up}});
    cpu.each_row(tokens, hidden * 32,
                 [&](Dim t) { activate<Activation>(cpu.rows(), gate.row(t), up.row(t), hidden); });
    cpu.linear<Formats>(gate, {{&weights.down, y, accumulate}});
  }
};
using SwiGlu = GatedMlp<Silu>;
using GeGlu = GatedMlp<Gelu>;

}  // namespace tenon::inline TENON_ABI
