#pragma once
// The plan of hybrids: common layers (kind 0) with a rare one (kind 1) in every period, where
// neighbours may share keys and values (cross-layer attention, arXiv 2405.12981).
#include <algorithm>

#include "plan.hpp"

namespace tenon::inline TENON_ABI {

struct Interleave {
  static constexpr int all = 0;
  static constexpr bool fixed = true;  // does not depend on metadata

  int period = 1, rare_at = 0;
  // Runs of this many common layers, counted from the last rare one, read the rows of their first.
  int share_common = 1;
  // As many rare layers, counted from the first, read the rows of the first of them; `all` of them.
  int share_rare = 1;

  constexpr bool valid() const {
    return period >= 1 && rare_at >= 0 && rare_at < period && share_common >= 1 && share_rare >= 0;
  }
  constexpr LayerRef at(int layer, const ModelConfig&) const {
    const int since = (layer + period - 1 - rare_at) % period;  // common layers since a rare one
    if (since < period - 1) return {0, layer - (std::min)(layer, since % share_common)};
    const int rare = layer / period;
    const int owner = share_rare == all ? 0 : rare - rare % share_rare;
    return {1, owner * period + rare_at};
  }
};

// Every run of `factor` layers of one kind reads the rows of its first (CLA of that factor).
struct SharedInRuns {
  static constexpr bool fixed = true;
  int factor = 2;
  constexpr bool valid() const { return factor >= 1; }
  constexpr LayerRef at(int layer, const ModelConfig&) const { return {0, layer - layer % factor}; }
};

// Kinds in a repeating pattern, each layer with its own state: Cycle{{0, 1, 0, 2}}.
template <std::size_t N>
struct Cycle {
  static constexpr bool fixed = true;
  int kinds[N];
  constexpr LayerRef at(int layer, const ModelConfig&) const {
    return {kinds[static_cast<std::size_t>(layer) % N], layer};
  }
};
template <std::size_t N>
Cycle(const int (&)[N]) -> Cycle<N>;

}  // namespace tenon::inline TENON_ABI
