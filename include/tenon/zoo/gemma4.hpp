#pragma once
// Gemma 4: local and global layers with heads of different widths, the last of which read the keys
// and values of an earlier layer of their kind; values are normed; every layer also gets an input
// of its own, made from the tokens. Files with experts are not covered.
#include <array>

#include "../attn/score_hooks.hpp"
#include "../cache/contiguous.hpp"
#include "../cache/ring.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

// Kinds: 0 sees a window, 1 everything. The last attention.shared_kv_layers layers read the last
// layer of their kind before them that owns its rows.
struct Gemma4Plan {
  constexpr LayerRef at(int layer, const ModelConfig& config) const {
    const int kind = kind_of(layer, config);
    const int layers = config.layers();
    const double shared = config.number_or("attention.shared_kv_layers", 0);
    const int owners = shared >= 0 && shared < layers ? layers - static_cast<int>(shared) : layers;
    int source = layer < owners ? layer : owners - 1;
    while (source >= 0 && kind_of(source, config) != kind) --source;
    return {kind, source};  // -1: no owner, which the Decoder refuses
  }

 private:
  static constexpr int kind_of(int layer, const ModelConfig& config) {
    return config.number_or_flag("attention.sliding_window_pattern", layer) != 0 ? 0 : 1;
  }
};

// embedding_length_per_layer_input: values of each layer's own input; 0 when it has none.
constexpr Dim gemma4_layer_input(const ModelConfig& config) {
  constexpr std::string_view key = "embedding_length_per_layer_input";
  return config.number_or(key, 0) == 0 ? 0 : config.size(key);
}

// The residual stream as in Gemma, and the layers' own inputs [tokens, layers x n]:
//   (rms_norm(W x / sqrt(width)) + sqrt(n) row of per_layer_token_embd) / sqrt(2)
struct LayerInputs {
  template <class Formats>
  struct Weights {
    PackedMatrix<Formats> embedding;     // [vocab, width]
    PackedMatrix<Formats> layer_tokens;  // [vocab, layers x n]
    PackedMatrix<Formats> projection;    // [layers x n, width]
    RmsNorm::Weights norm;               // [n]
    Dim n = 0, layers = 0;

    void read(const ModelConfig& config) {
      n = gemma4_layer_input(config);
      layers = config.layers();
      norm.read(config);
    }
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, Axis vocab) {
      visitor.matrix("token_embd", embedding, vocab, width);
      if (n == 0) return;
      const Axis all{layers * n, "block_count x embedding_length_per_layer_input"};
      visitor.matrix("per_layer_token_embd", layer_tokens, vocab, all);
      visitor.matrix("per_layer_model_proj", projection, all, width);
      norm.visit(visitor, "per_layer_proj_norm", {n, "embedding_length_per_layer_input"});
    }
  };

  static constexpr InputNumbers numbers(const ModelConfig& config) {
    const Dim n = gemma4_layer_input(config);
    const Dim all = exact_product(config.layers(), n);
    return {{exact_product(all, config.width()), n}, exact_product(config.vocab(), all)};
  }

  template <class Formats>
  static MatView<const float> forward(Cpu& cpu, const Weights<Formats>& weights,
                                      std::span<const Token> tokens, MatView<float> x) {
    const float width = static_cast<float>(x.extent(1));
    cpu.each_row(x.extent(0), x.extent(1) * 8, [&](Dim t) {
      weights.embedding.decode_row(tokens[static_cast<std::size_t>(t)], x.row(t));
      scale(x.row(t), x.extent(1), std::sqrt(width));
    });
    if (weights.n == 0) return {};
    const Dim all = weights.layers * weights.n;
    const auto inputs = cpu.take_matrix(x.extent(0), all);
    const auto looked_up = cpu.take_matrix(x.extent(0), all);
    cpu.linear<Formats>(x, {{&weights.projection, inputs}});
    cpu.each_row(x.extent(0), all,
                 [&](Dim t) { scale(inputs.row(t), all, 1.0f / std::sqrt(width)); });
    const auto parts = matrix(inputs.data, x.extent(0) * weights.layers, weights.n);
    RmsNorm::forward(cpu, weights.norm, parts, parts);
    cpu.each_row(x.extent(0), all * 8, [&](Dim t) {
      weights.layer_tokens.decode_row(tokens[static_cast<std::size_t>(t)], looked_up.row(t));
      scale(looked_up.row(t), all, std::sqrt(static_cast<float>(weights.n)));
      cpu.rows().add_to(looked_up.row(t), all, inputs.row(t));
      scale(inputs.row(t), all, 1.0f / std::sqrt(2.0f));
    });
    return inputs;
  }

 private:
  static void scale(float* row, Dim n, float by) {
    for (Dim i = 0; i < n; ++i) row[i] *= by;
  }
};

// Gemma's norms; then x += norm(W2 (gelu(W1 x) * the layer's input)), and x *= layer_output_scale.
struct LayerInputResidual {
  static constexpr Values values(const ModelConfig& config, Dim width) {
    const Dim n = gemma4_layer_input(config);
    return {exact_product(2, n, width), n == 0 ? 4 * width : 5 * width};
  }

  template <class Norm, class Formats>
  struct Weights {
    SandwichNorm::Weights<Norm, Formats> sandwich;
    PackedMatrix<Formats> gate, projection;  // [n, width], [width, n]
    typename Norm::Weights norm;
    std::vector<float> scale;  // [1], or empty
    Dim n = 0;

    void read(const ModelConfig& config, int layer) {
      sandwich.read(config, layer);
      norm.read(config);
      n = gemma4_layer_input(config);
    }
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width) {
      sandwich.visit(visitor, width);
      visitor.optional_vector("layer_output_scale", scale, {1, "one number"});
      if (n == 0) return;
      const Axis input{n, "embedding_length_per_layer_input"};
      visitor.matrix("inp_gate", gate, input, width);
      visitor.matrix("proj", projection, width, input);
      norm.visit(visitor, "post_norm", width);
    }
  };

  template <class Norm, class Formats, class Mix, class Feed>
  static void forward(Cpu& cpu, const Weights<Norm, Formats>& weights, const LayerStep& step,
                      MatView<float> x, Mix&& mix, Feed&& feed) {
    SandwichNorm::forward<Norm, Formats>(cpu, weights.sandwich, step, x, mix, feed);
    if (weights.n > 0) add_input<Norm, Formats>(cpu, weights, step, x);
    if (weights.scale.empty()) return;
    cpu.each_row(x.extent(0), x.extent(1), [&](Dim t) {
      for (Dim i = 0; i < x.extent(1); ++i) x(t, i) *= weights.scale[0];
    });
  }

 private:
  template <class Norm, class Formats>
  static void add_input(Cpu& cpu, const Weights<Norm, Formats>& weights, const LayerStep& step,
                        MatView<float> x) {
    const auto frame = cpu.workspace().frame();
    const auto gate = cpu.take_matrix(x.extent(0), weights.n);
    const auto branch = cpu.take_matrix(x.extent(0), x.extent(1));
    cpu.linear<Formats>(x, {{&weights.gate, gate}});
    cpu.each_row(x.extent(0), weights.n * 32, [&](Dim t) {
      const float* input = step.layer_inputs.row(t) + step.layer * weights.n;
      for (Dim i = 0; i < weights.n; ++i) gate(t, i) = Gelu::f(gate(t, i)) * input[i];
    });
    cpu.linear<Formats>(gate, {{&weights.projection, branch}});
    Norm::forward(cpu, weights.norm, branch, branch);
    cpu.add(branch, x);
  }
};

inline constexpr GqaSpec gemma4_local{
    .qk_norm = QkNorm::per_head, .value_norm = true, .window_sizes = true};
inline constexpr GqaSpec gemma4_global{.qk_norm = QkNorm::per_head, .value_norm = true};

template <GqaSpec S, class M, class Pos, class Cache>
using Gemma4Layer = Block<Gqa<S, M, Pos, Cache, UnitScale>, GeGlu, RmsNorm, LayerInputResidual>;

template <class Window = Ring<CacheFormats>, class Cache = Contiguous<CacheFormats>,
          class Formats = WeightFormats>
using Gemma4 = Decoder<Kinds<Gemma4Layer<gemma4_local, SlidingWindow, LocalRopeHalves, Window>,
                             Gemma4Layer<gemma4_global, Causal, RopeHalves, Cache>>,
                       Gemma4Plan{}, Formats, DecoderSpec{}, LayerInputs>;

}  // namespace tenon::inline TENON_ABI::zoo
