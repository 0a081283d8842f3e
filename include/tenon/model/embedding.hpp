#pragma once
// How tokens become the residual stream: the Input policy of a Decoder.
#include <cmath>
#include <span>

#include "../core/config.hpp"
#include "../kernels/cpu.hpp"
#include "../nn/bind.hpp"

namespace tenon::inline TENON_ABI {

// x = row of token_embd.
struct TokenEmbedding {
  template <class Formats>
  struct Weights {
    PackedMatrix<Formats> embedding;  // [vocab, width]

    void read(const ModelConfig&) {}
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, Axis vocab) {
      visitor.matrix("token_embd", embedding, vocab, width);
    }
  };

  // Fills x [tokens, width]; what it returns is given to every layer as LayerStep::layer_inputs.
  template <class Formats>
  static MatView<const float> forward(Cpu& cpu, const Weights<Formats>& weights,
                                      std::span<const Token> tokens, MatView<float> x) {
    cpu.each_row(x.extent(0), x.extent(1) * 8, [&](Dim t) {
      weights.embedding.decode_row(tokens[static_cast<std::size_t>(t)], x.row(t));
    });
    return {};
  }
};

// x = sqrt(width) * row of token_embd (Gemma).
struct ScaledEmbedding {
  template <class Formats>
  using Weights = TokenEmbedding::Weights<Formats>;

  template <class Formats>
  static MatView<const float> forward(Cpu& cpu, const Weights<Formats>& weights,
                                      std::span<const Token> tokens, MatView<float> x) {
    const float scale = std::sqrt(static_cast<float>(x.extent(1)));
    cpu.each_row(x.extent(0), x.extent(1) * 8, [&](Dim t) {
      float* row = x.row(t);
      weights.embedding.decode_row(tokens[static_cast<std::size_t>(t)], row);
      for (Dim i = 0; i < x.extent(1); ++i) row[i] *= scale;
    });
    return {};
  }
};

}  // namespace tenon::inline TENON_ABI
