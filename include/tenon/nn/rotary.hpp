#pragma once
// Rotary positions. Whatever the variant (plain, linear, llama3 factors), a rotation is a list of
// frequencies; policies compute it once at bind, a session turns it into angles once per step.
#include <cmath>
#include <concepts>
#include <span>
#include <vector>

#include "../core/config.hpp"
#include "../kernels/cpu.hpp"

namespace tenon::inline TENON_ABI {

// Which values of a head turn together: (2i, 2i + 1), as in Llama's GGUF files, or
// (i, i + rope_dim / 2), as in Hugging Face checkpoints. The weights must have been laid out for
// it.
enum class Pairing { interleaved, halves };

struct RotaryFrequencies {
  Pairing pairing = Pairing::interleaved;
  std::vector<double> radians;  // [rope_dim / 2] per position
  double magnitude = 1;         // factor on sine and cosine
  bool operator==(const RotaryFrequencies&) const = default;
  Dim rope_dim() const { return 2 * static_cast<Dim>(radians.size()); }
};

// Sines and cosines of a step's positions, spread to the layout of the head: value i of the rotated
// head is x[i] * cosine[i] + x[partner of i] * sine[i].
struct RotaryAngles {
  Pairing pairing = Pairing::interleaved;
  Dim rope_dim = 0;
  MatView<float> cosines, sines;  // [tokens, rope_dim]
};

inline void fill_angles(const RotaryFrequencies& frequencies, std::span<const int> positions,
                        const RotaryAngles& angles) {
  const auto half = static_cast<Dim>(frequencies.radians.size());
  for (std::size_t t = 0; t < positions.size(); ++t) {
    float* cosines = angles.cosines.row(static_cast<Dim>(t));
    float* sines = angles.sines.row(static_cast<Dim>(t));
    for (Dim i = 0; i < half; ++i) {
      const double angle = positions[t] * frequencies.radians[static_cast<std::size_t>(i)];
      const auto cosine = static_cast<float>(std::cos(angle) * frequencies.magnitude);
      const auto sine = static_cast<float>(std::sin(angle) * frequencies.magnitude);
      const bool pairs = frequencies.pairing == Pairing::interleaved;
      const Dim a = pairs ? 2 * i : i, b = pairs ? 2 * i + 1 : i + half;
      cosines[a] = cosines[b] = cosine;
      sines[a] = -sine;
      sines[b] = sine;
    }
  }
}

// Rotates the heads of row t: x [heads x head_dim].
inline void rotate(const RowOps& ops, const RotaryAngles& angles, Dim t, float* x, Dim heads,
                   Dim head_dim) {
  const auto turn =
      angles.pairing == Pairing::interleaved ? ops.rotate_interleaved : ops.rotate_halves;
  turn(x, heads, head_dim, angles.rope_dim, angles.cosines.row(t), angles.sines.row(t));
}

template <class P>
concept Position = requires(const ModelConfig& config, Dim head_dim) {
  { P::rotates } -> std::convertible_to<bool>;
};

// A layer without positions.
struct NoRope {
  static constexpr bool rotates = false;
};

// RoFormer's rotation (arXiv 2104.09864), theta_i = base^(-2i / rope_dim), with linear scaling and
// with the per-frequency divisors of the tensor `rope_freqs.weight` (Llama 3.1) when there is one.
template <Pairing P>
struct RopeOf {
  static constexpr bool rotates = true;
  double base = 10000;
  double factor = 1;   // linear scaling divides positions by it
  Dim rope_dim = dyn;  // dyn: the whole head

  static constexpr RopeOf read(const ModelConfig& config, int layer) {
    RopeOf rope;
    rope.base = config.number_or("rope.freq_base", 10000, layer);
    if (!(rope.base > 0 && std::isfinite(rope.base))) {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".rope.freq_base\" must be positive, it is ", rope.base,
                      "; the file is damaged");
    }
    if (config.has("rope.dimension_count"))
      rope.rope_dim = config.size("rope.dimension_count", layer);
    // A factor without a type means linear, as in the files of early converters.
    const bool scaled = config.has("rope.scaling.factor");
    const std::string_view scaling =
        config.text_or("rope.scaling.type", scaled ? "linear" : "none");
    if (scaling == "linear") {
      const double scale = config.number("rope.scaling.factor");
      if (!(scale > 0 && std::isfinite(scale))) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".rope.scaling.factor\" must be positive, it is ", scale,
                        "; the file is damaged");
      }
      rope.factor = scale;
    } else if (scaling != "none") {
      fail<LoadError>(
          "metadata key \"", config.architecture,
          ".rope.scaling.type\" must be \"none\" or \"linear\" for this model type, it is \"",
          printable(scaling), "\"; compose the model with a position policy that implements it");
    }
    return rope;
  }

  // `divisors` is empty or has one value per frequency.
  RotaryFrequencies frequencies(Dim head_dim, std::span<const float> divisors) const {
    const Dim turned = rope_dim == dyn ? head_dim : rope_dim;
    if (turned < 2 || turned % 2 != 0 || turned > head_dim) {
      fail<ShapeError>("rope.dimension_count must be even and at most the head's ", head_dim,
                       " values, it is ", turned, "; the file is damaged or of another model type");
    }
    RotaryFrequencies out{P, {}, 1};
    for (Dim i = 0; i < turned / 2; ++i) {
      double radians = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
      radians /= factor;
      if (!divisors.empty()) radians /= static_cast<double>(divisors[static_cast<std::size_t>(i)]);
      out.radians.push_back(radians);
    }
    return out;
  }
};
using Rope = RopeOf<Pairing::interleaved>;
using RopeHalves = RopeOf<Pairing::halves>;

}  // namespace tenon::inline TENON_ABI
