#pragma once
// One layer: a mixer and a feed-forward layer on the residual stream.
#include <type_traits>

#include "../cache/row_cache.hpp"
#include "../core/config.hpp"
#include "../core/layer_numbers.hpp"
#include "../kernels/cpu.hpp"
#include "../mixer/layer_step.hpp"
#include "../nn/bind.hpp"
#include "../quant/dense.hpp"
#include "residual.hpp"

namespace tenon::inline TENON_ABI {

template <class X>
consteval bool explain_mixer() {
  static_assert(
      requires { typename X::Store; },
      "tenon: a Mixer must name its cache, `using Store = Contiguous<F32>` (or another)");
  static_assert(
      requires(const ModelConfig& c) {
        { X::Config::read(c, 0) } -> std::same_as<typename X::Config>;
      },
      "tenon: a Mixer must provide `struct Config` with `static constexpr Config read(const "
      "ModelConfig&, int layer)`");
  static_assert(
      requires(const typename X::Config& c) {
        { X::rows(c) } -> std::same_as<RowSpec>;
      },
      "tenon: a Mixer must provide `static constexpr RowSpec rows(const Config&)`, what one cached "
      "row is");
  static_assert(
      requires { typename X::template Weights<F32>; },
      "tenon: a Mixer must provide `template <class Formats> struct Weights`");
  static_assert(
      requires(Cpu & cpu, const typename X::template Weights<F32>& w, typename X::Store& store,
               const LayerStep& step,
               MatView<float> m) { X::forward(cpu, w, store, Slot{}, step, m, m, true); },
      "tenon: a Mixer must provide `static void forward(Cpu&, const Weights<F>&, Store&, Slot, "
      "const "
      "LayerStep&, MatView<const float> x, MatView<float> y, bool accumulate)`");
  return true;
}

template <class X>
consteval bool explain_feed_forward() {
  static_assert(
      requires(const ModelConfig& c) {
        { X::Config::read(c, 0) } -> std::same_as<typename X::Config>;
      },
      "tenon: a feed-forward layer must provide `struct Config` with `static constexpr Config "
      "read(const ModelConfig&, int layer)`");
  static_assert(
      requires(Cpu & cpu, const typename X::template Weights<F32>& w, MatView<float> m) {
        X::forward(cpu, w, m, m, true);
      },
      "tenon: a feed-forward layer must provide `static void forward(Cpu&, const Weights<F>&, "
      "MatView<const float> x, MatView<float> y, bool accumulate)`");
  return true;
}

template <class MixerLayer, class FeedForwardLayer, class NormLayer, class Residual = PreNorm>
struct Block {
  static_assert(explain_mixer<MixerLayer>() && explain_feed_forward<FeedForwardLayer>());
  using Mixer = MixerLayer;
  using FeedForward = FeedForwardLayer;
  using Norm = NormLayer;

  template <class Formats>
  struct Weights {
    typename Residual::template Weights<Norm, Formats> residual;
    typename Mixer::template Weights<Formats> mixer;
    typename FeedForward::template Weights<Formats> feed_forward;

    void read(const ModelConfig& config, int layer) {
      residual.read(config, layer);
      read_weights<Mixer>(mixer, config, layer);
      read_weights<FeedForward>(feed_forward, config, layer);
    }
    // `owns`: this layer has its own state; otherwise it reads another layer's.
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, bool owns) {
      residual.visit(visitor, width);
      mixer.visit(visitor, width, owns);
      feed_forward.visit(visitor, width);
    }

   private:
    template <class Part, class PartWeights>
    static void read_weights(PartWeights& weights, const ModelConfig& config, int layer) {
      if constexpr (requires { weights.read(config, layer); }) {
        weights.read(config, layer);
      } else {
        weights.config = Part::Config::read(config, layer);
      }
    }
  };

  // x: the residual stream [tokens, width], updated in place.
  template <class Formats>
  static void forward(Cpu& cpu, const Weights<Formats>& weights, typename Mixer::Store& store,
                      Slot slot, const LayerStep& step, MatView<float> x) {
    const auto mix = [&](MatView<const float> from, MatView<float> to, bool accumulate) {
      Mixer::forward(cpu, weights.mixer, store, slot, step, from, to, accumulate);
    };
    const auto feed = [&](MatView<const float> from, MatView<float> to, bool accumulate) {
      FeedForward::forward(cpu, weights.feed_forward, from, to, accumulate);
    };
    Residual::template forward<Norm, Formats>(cpu, weights.residual, step, x, mix, feed);
  }

  // What one layer of these types costs (core/layer_numbers.hpp).
  static constexpr LayerNumbers numbers(const ModelConfig& config, int layer, Dim width,
                                        bool owns) {
    static_assert(
        requires(const typename Mixer::Config& c) {
          { Mixer::numbers(c, width, owns) } -> std::same_as<MixerNumbers>;
        },
        "tenon: a Mixer whose cost is asked for must provide `static constexpr MixerNumbers "
        "numbers(const Config&, Dim width, bool owns)`");
    static_assert(
        requires(const typename FeedForward::Config& c) {
          { FeedForward::numbers(c, width) } -> std::same_as<FeedForwardNumbers>;
        },
        "tenon: a feed-forward layer whose cost is asked for must provide `static constexpr "
        "FeedForwardNumbers numbers(const Config&, Dim width)`");
    const auto mixer = Mixer::Config::read(config, layer);
    const RowSpec rows = Mixer::rows(mixer);
    LayerNumbers n{Mixer::numbers(mixer, width, owns),
                   FeedForward::numbers(FeedForward::Config::read(config, layer), width),
                   {},
                   rows.widths[0],
                   rows.widths[1],
                   rows.reach,
                   rows.first};
    if constexpr (requires { Residual::values(config, width); }) {
      n.residual = Residual::values(config, width);
    }
    return n;
  }

  // Whether the checkpoint asks for the policies of this block.
  static constexpr bool fits(const ModelConfig& config, int layer) {
    return policy_fits<Mixer>(config, layer) && policy_fits<FeedForward>(config, layer);
  }
  // Calls fn(pin) for every size the types of this block fix.
  template <class Fn>
  static constexpr void each_pin(const ModelConfig& config, int layer, Fn&& fn) {
    const auto of = [&]<class Part>(std::type_identity<Part>) {
      if constexpr (requires { Part::pins(config, layer); }) {
        for (const Pin& pin : Part::pins(config, layer)) fn(pin);
      }
    };
    of(std::type_identity<Mixer>{});
    of(std::type_identity<FeedForward>{});
  }
};

}  // namespace tenon::inline TENON_ABI
