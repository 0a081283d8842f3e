#pragma once
// Norms over the width of a token.
#include <vector>

#include "../core/config.hpp"
#include "../kernels/cpu.hpp"
#include "bind.hpp"

namespace tenon::inline TENON_ABI {

// y = x / sqrt(mean(x^2) + eps) * gain (arXiv 1910.07467).
struct RmsNorm {
  struct Weights {
    float epsilon = 1e-5f;
    std::vector<float> gain;  // [width]

    void read(const ModelConfig& config) {
      const double stated = config.number("attention.layer_norm_rms_epsilon");
      if (!(stated >= 0 && stated < 1)) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".attention.layer_norm_rms_epsilon\" must lie in [0, 1), it is ", stated,
                        "; the file is damaged");
      }
      epsilon = static_cast<float>(stated);
    }
    template <class Visitor>
    void visit(Visitor&& visitor, std::string_view name, Axis width) {
      visitor.vector(name, gain, width);
    }
  };
  // x, y: [tokens, width]; they may be the same.
  static void forward(Cpu& cpu, const Weights& weights, MatView<const float> x, MatView<float> y) {
    cpu.rms_norm(x, weights.gain.data(), weights.epsilon, y);
  }
};

}  // namespace tenon::inline TENON_ABI
