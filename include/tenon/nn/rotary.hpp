#pragma once
// Rotations. Whatever the variant (plain, linear, llama3 factors, YaRN), a rotation is a list of
// frequencies; policies (rope.hpp) compute it once at bind, a session turns it into angles once per
// step.
#include <cmath>
#include <span>
#include <vector>

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

namespace detail {
inline void fill_row(const RotaryFrequencies& frequencies, double position, double magnitude,
                     const RotaryAngles& angles, Dim row) {
  const auto half = static_cast<Dim>(frequencies.radians.size());
  float* cosines = angles.cosines.row(row);
  float* sines = angles.sines.row(row);
  for (Dim i = 0; i < half; ++i) {
    const double angle = position * frequencies.radians[static_cast<std::size_t>(i)];
    const auto cosine = static_cast<float>(std::cos(angle) * magnitude);
    const auto sine = static_cast<float>(std::sin(angle) * magnitude);
    const bool pairs = frequencies.pairing == Pairing::interleaved;
    const Dim a = pairs ? 2 * i : i, b = pairs ? 2 * i + 1 : i + half;
    cosines[a] = cosines[b] = cosine;
    sines[a] = -sine;
    sines[b] = sine;
  }
}
}  // namespace detail

// Angles [tokens, rope_dim] of absolute positions, computed in double.
inline void fill_angles(const RotaryFrequencies& frequencies, std::span<const int> positions,
                        const RotaryAngles& angles) {
  for (std::size_t t = 0; t < positions.size(); ++t) {
    detail::fill_row(frequencies, positions[t], frequencies.magnitude, angles, static_cast<Dim>(t));
  }
}

// Angles [1, rope_dim] that move a row already rotated to position p on to p + delta, delta of
// either sign. The row has its magnitude already, so these have magnitude 1.
inline void fill_shift_angles(const RotaryFrequencies& frequencies, int delta,
                              const RotaryAngles& angles) {
  detail::fill_row(frequencies, delta, 1, angles, 0);
}

// Rotates the heads of row t: x [heads x head_dim].
inline void rotate(const RowOps& ops, const RotaryAngles& angles, Dim t, float* x, Dim heads,
                   Dim head_dim) {
  const auto turn =
      angles.pairing == Pairing::interleaved ? ops.rotate_interleaved : ops.rotate_halves;
  turn(x, heads, head_dim, angles.rope_dim, angles.cosines.row(t), angles.sines.row(t));
}

}  // namespace tenon::inline TENON_ABI
