#pragma once
// One residual layer: x += mixer(norm(x)); x += feed_forward(norm(x)).
#include <type_traits>

#include "../cache/row_cache.hpp"
#include "../core/config.hpp"
#include "../kernels/cpu.hpp"
#include "../mixer/layer_step.hpp"
#include "../nn/bind.hpp"
#include "../quant/dense.hpp"

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

template <class MixerLayer, class FeedForwardLayer, class NormLayer>
struct Block {
  static_assert(explain_mixer<MixerLayer>() && explain_feed_forward<FeedForwardLayer>());
  using Mixer = MixerLayer;
  using FeedForward = FeedForwardLayer;
  using Norm = NormLayer;

  template <class Formats>
  struct Weights {
    typename Norm::Weights mixer_norm, feed_forward_norm;
    typename Mixer::template Weights<Formats> mixer;
    typename FeedForward::template Weights<Formats> feed_forward;

    void read(const ModelConfig& config, int layer) {
      mixer_norm.read(config);
      feed_forward_norm.read(config);
      mixer.config = Mixer::Config::read(config, layer);
      feed_forward.config = FeedForward::Config::read(config, layer);
    }
    // `owns`: this layer has its own state; otherwise it reads another layer's.
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, bool owns) {
      mixer_norm.visit(visitor, "attn_norm", width);
      mixer.visit(visitor, width, owns);
      feed_forward_norm.visit(visitor, "ffn_norm", width);
      feed_forward.visit(visitor, width);
    }
  };

  // x: the residual stream [tokens, width], updated in place.
  template <class Formats>
  static void forward(Cpu& cpu, const Weights<Formats>& weights, typename Mixer::Store& store,
                      Slot slot, const LayerStep& step, MatView<float> x) {
    const auto frame = cpu.workspace().frame();
    const auto normed = cpu.take_matrix(x.extent(0), x.extent(1));
    Norm::forward(cpu, weights.mixer_norm, x, normed);
    Mixer::forward(cpu, weights.mixer, store, slot, step, normed, x, true);
    Norm::forward(cpu, weights.feed_forward_norm, x, normed);
    FeedForward::forward(cpu, weights.feed_forward, normed, x, true);
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
