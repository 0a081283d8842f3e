#pragma once
// The mergeable state of a softmax: maximum, denominator, un-normalised output. Tiles, split
// contexts, shared prefixes and sinks are all folds of it.
#include <cmath>
#include <cstring>
#include <limits>

#include "../kernels/attention_ops.hpp"

namespace tenon::inline TENON_ABI {

// States of `count` queries side by side; the memory belongs to the caller.
struct SoftmaxStates {
  float* maxima = nullptr;        // [count]
  float* denominators = nullptr;  // [count]
  float* outputs = nullptr;       // [count, dim]
  Dim dim = 0;

  static constexpr Dim floats(Dim count, Dim dim) { return count * (2 + dim); }
  static SoftmaxStates at(float* memory, Dim count, Dim dim) {
    return {memory, memory + count, memory + 2 * count, dim};
  }
  float* output(Dim i) const { return outputs + i * dim; }

  // Nothing folded yet. merge() into such a state writes its output, other folds add to it: they
  // need clear().
  void begin(Dim count) const {
    for (Dim i = 0; i < count; ++i) {
      maxima[i] = -std::numeric_limits<float>::infinity();
      denominators[i] = 0;
    }
  }
  void clear(Dim count) const {
    begin(count);
    std::memset(outputs, 0, static_cast<std::size_t>(count * dim) * sizeof(float));
  }
  // Folds state i of `later` (keys that come after mine) into state i of this.
  void merge(const AttentionOps& ops, Dim i, const SoftmaxStates& later) const {
    if (later.denominators[i] == 0) return;
    if (denominators[i] == 0) {
      maxima[i] = later.maxima[i];
      denominators[i] = later.denominators[i];
      std::memcpy(output(i), later.output(i), static_cast<std::size_t>(dim) * sizeof(float));
      return;
    }
    const float top = (std::max)(maxima[i], later.maxima[i]);
    const float a = ops.exponential_of(maxima[i] - top);
    const float b = ops.exponential_of(later.maxima[i] - top);
    const float theirs = later.denominators[i] * b;
    denominators[i] = std::fma(denominators[i], a, theirs);
    ops.merge_outputs(output(i), a, later.output(i), b, dim);
    maxima[i] = top;
  }
};

}  // namespace tenon::inline TENON_ABI
