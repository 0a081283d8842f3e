#pragma once
// The query scale of Gemma 2 and 3, which their files do not state.
#include <cmath>

#include "../attn/score_hooks.hpp"

namespace tenon::inline TENON_ABI::zoo {

// 1 / sqrt(head_dim), but in the 27 billion model, known by its number of layers,
// 1 / sqrt(width / heads).
template <int LayersOf27B>
struct GemmaScale {
  float of_27b = 0;

  static GemmaScale read(const ModelConfig& config, int layer) {
    if (config.layers() != LayersOf27B) return {};
    const Dim heads = config.size("attention.head_count", layer);
    return {1.0f / std::sqrt(static_cast<float>(config.width()) / static_cast<float>(heads))};
  }
  constexpr float scale(float usual) const { return of_27b == 0 ? usual : of_27b; }
};

}  // namespace tenon::inline TENON_ABI::zoo
