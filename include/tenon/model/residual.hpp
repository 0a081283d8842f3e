#pragma once
// How the mixer and the feed-forward layer of a block join the residual stream: which norms stand
// where. A policy of Block; `mix(from, to, accumulate)` and `feed(from, to, accumulate)` compute
// the two on [tokens, width].
#include "../core/config.hpp"
#include "../core/fixed_string.hpp"
#include "../core/layer_numbers.hpp"
#include "../kernels/cpu.hpp"
#include "../mixer/layer_step.hpp"
#include "../nn/bind.hpp"

namespace tenon::inline TENON_ABI {

// x += mix(norm(x)); x += feed(norm(x)), with the norms under these names.
template <FixedString MixerNorm, FixedString FeedNorm>
struct PreNormNamed {
  static constexpr Values values(const ModelConfig&, Dim width) { return {0, 2 * width}; }

  template <class Norm, class Formats>
  struct Weights {
    typename Norm::Weights mixer, feed_forward;

    void read(const ModelConfig& config, int) {
      mixer.read(config);
      feed_forward.read(config);
    }
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width) {
      mixer.visit(visitor, MixerNorm.view(), width);
      feed_forward.visit(visitor, FeedNorm.view(), width);
    }
  };

  template <class Norm, class Formats, class Mix, class Feed>
  static void forward(Cpu& cpu, const Weights<Norm, Formats>& weights, const LayerStep&,
                      MatView<float> x, Mix&& mix, Feed&& feed) {
    const auto frame = cpu.workspace().frame();
    const auto normed = cpu.take_matrix(x.extent(0), x.extent(1));
    Norm::forward(cpu, weights.mixer, x, normed);
    mix(normed, x, true);
    Norm::forward(cpu, weights.feed_forward, x, normed);
    feed(normed, x, true);
  }
};
using PreNorm = PreNormNamed<"attn_norm", "ffn_norm">;

// x += norm(mix(norm(x))); x += norm(feed(norm(x))) (Gemma 2 and 3).
struct SandwichNorm {
  static constexpr Values values(const ModelConfig&, Dim width) { return {0, 4 * width}; }

  template <class Norm, class Formats>
  struct Weights {
    typename Norm::Weights mixer, mixed, feed_forward, fed;

    void read(const ModelConfig& config, int) {
      for (auto* norm : {&mixer, &mixed, &feed_forward, &fed}) norm->read(config);
    }
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width) {
      mixer.visit(visitor, "attn_norm", width);
      mixed.visit(visitor, "post_attention_norm", width);
      feed_forward.visit(visitor, "ffn_norm", width);
      fed.visit(visitor, "post_ffw_norm", width);
    }
  };

  template <class Norm, class Formats, class Mix, class Feed>
  static void forward(Cpu& cpu, const Weights<Norm, Formats>& weights, const LayerStep&,
                      MatView<float> x, Mix&& mix, Feed&& feed) {
    const auto frame = cpu.workspace().frame();
    const auto normed = cpu.take_matrix(x.extent(0), x.extent(1));
    const auto branch = cpu.take_matrix(x.extent(0), x.extent(1));
    Norm::forward(cpu, weights.mixer, x, normed);
    mix(normed, branch, false);
    Norm::forward(cpu, weights.mixed, branch, branch);
    cpu.add(branch, x);
    Norm::forward(cpu, weights.feed_forward, x, normed);
    feed(normed, branch, false);
    Norm::forward(cpu, weights.fed, branch, branch);
    cpu.add(branch, x);
  }
};

// y = norm(x); x += mix(y) + feed(y) (GPT-J, Falcon, Phi-2).
struct ParallelResidual {
  static constexpr Values values(const ModelConfig&, Dim width) { return {0, width}; }

  template <class Norm, class Formats>
  struct Weights {
    typename Norm::Weights norm;

    void read(const ModelConfig& config, int) { norm.read(config); }
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width) {
      norm.visit(visitor, "attn_norm", width);
    }
  };

  template <class Norm, class Formats, class Mix, class Feed>
  static void forward(Cpu& cpu, const Weights<Norm, Formats>& weights, const LayerStep&,
                      MatView<float> x, Mix&& mix, Feed&& feed) {
    const auto frame = cpu.workspace().frame();
    const auto normed = cpu.take_matrix(x.extent(0), x.extent(1));
    Norm::forward(cpu, weights.norm, x, normed);
    mix(normed, x, true);
    feed(normed, x, true);
  }
};

}  // namespace tenon::inline TENON_ABI
