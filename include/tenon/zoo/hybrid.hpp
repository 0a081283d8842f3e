#pragma once
// Our own architecture "hybrid": each layer says whether it sees a window and whose keys and values
// it reads. Windowed layers that own theirs keep them in a ring; a layer that reads a global one's
// sees a part of it, whatever its own window.
#include "../cache/contiguous.hpp"
#include "../cache/ring.hpp"
#include "../mixer/gqa.hpp"
#include "../model/decoder.hpp"
#include "../nn/mlp.hpp"
#include "../nn/norm.hpp"
#include "formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

// Kinds: 0 windowed, 1 global, 2 windowed that reads a global layer.
struct HybridPlan {
  constexpr LayerRef at(int layer, const ModelConfig& config) const {
    const int source = owner(layer, config);
    if (!windowed(layer, config)) return {1, source};
    return {source < 0 || windowed(source, config) ? 0 : 2, source};
  }

 private:
  static constexpr bool windowed(int layer, const ModelConfig& config) {
    return config.number_or_flag("attention.sliding_window_pattern", layer) != 0;
  }
  // -1 for what is no earlier layer; the Decoder refuses it with the layer's number.
  static constexpr int owner(int layer, const ModelConfig& config) {
    if (!config.has("attention.kv_source")) return layer;
    const double source = config.number("attention.kv_source", layer);
    const bool whole = source >= 0 && source <= layer && source == static_cast<int>(source);
    return whole ? static_cast<int>(source) : -1;
  }
};

template <class M, class Cache>
using HybridLayer = Block<Gqa<GqaSpec{}, M, Rope, Cache>, SwiGlu, RmsNorm>;

template <class Window = Ring<CacheFormats>, class Cache = Contiguous<CacheFormats>,
          class Formats = WeightFormats>
using Hybrid = Decoder<Kinds<HybridLayer<SlidingWindow, Window>, HybridLayer<Causal, Cache>,
                             HybridLayer<SlidingWindow, Cache>>,
                       HybridPlan{}, Formats>;

}  // namespace tenon::inline TENON_ABI::zoo
