#pragma once
// Feed-forward layers.
#include "../core/config.hpp"
#include "../kernels/cpu.hpp"
#include "../kernels/packed.hpp"
#include "bind.hpp"

namespace tenon::inline TENON_ABI {

// An activation is a type with `static float f(float)`; one that the kernels know also names it by
// `gate(ops)`, the leaf that computes f(gate) * up in place.
struct Silu {
  static float f(float x) { return x / (1 + std::exp(-x)); }
  static auto gate(const RowOps& ops) { return ops.silu_gate; }
};

struct MlpSpec {
  Dim hidden = dyn;  // feed_forward_length
};

// down(f(gate(x)) * up(x)) (arXiv 2002.05202).
template <class Activation, MlpSpec S = MlpSpec{}>
struct GatedMlp {
  struct Config {
    Dim hidden;
    static constexpr Config read(const ModelConfig& config, int layer) {
      return {config.size("feed_forward_length", layer)};
    }
  };
  static constexpr std::array<Pin, 1> pins(const ModelConfig& config, int layer) {
    return {Pin{"feed_forward_length", S.hidden, config.size("feed_forward_length", layer)}};
  }

  template <class Formats>
  struct Weights {
    Config config{};
    PackedMatrix<Formats> gate, up, down;  // [hidden, width] x 2, [width, hidden]

    template <class Visitor>
    void visit(Visitor&& visitor, Axis width) {
      const Axis hidden{config.hidden, "feed_forward_length"};
      visitor.matrix("ffn_gate", gate, hidden, width);
      visitor.matrix("ffn_up", up, hidden, width);
      visitor.matrix("ffn_down", down, width, hidden);
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
    cpu.each_row(tokens, hidden * 32, [&](Dim t) {
      if constexpr (requires { Activation::gate(cpu.rows()); }) {
        Activation::gate(cpu.rows())(gate.row(t), up.row(t), hidden);
      } else {
        for (Dim i = 0; i < hidden; ++i) gate(t, i) = Activation::f(gate(t, i)) * up(t, i);
      }
    });
    cpu.linear<Formats>(gate, {{&weights.down, y, accumulate}});
  }
};
using SwiGlu = GatedMlp<Silu>;

}  // namespace tenon::inline TENON_ABI
