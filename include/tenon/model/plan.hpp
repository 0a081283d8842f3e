#pragma once
// Layer plans: which kind each layer is, and whose rows it reads. Arithmetic on values.
#include <concepts>

#include "../core/config.hpp"

namespace tenon::inline TENON_ABI {

struct LayerRef {
  int kind = 0;
  int source = 0;  // the layer whose state this one reads; itself when it owns one
  constexpr bool operator==(const LayerRef&) const = default;
};

template <class P>
concept LayerPlan = requires(const P plan, int layer, const ModelConfig& config) {
  { plan.at(layer, config) } -> std::same_as<LayerRef>;
};

template <class P>
consteval bool explain_plan() {
  static_assert(LayerPlan<P>,
                "tenon: a layer plan must provide `constexpr LayerRef at(int layer, const "
                "ModelConfig&) const`");
  return true;
}

// What is wrong with the sharing of a plan that needs no metadata (`static constexpr bool fixed`),
// for kinds whose caches and masks these tables describe.
enum class SharingFault { none, other_cache, wider_window };
template <class P, std::size_t N>
consteval SharingFault sharing_fault(const P& plan, const int (&store_of)[N],
                                     const bool (&bounded)[N]) {
  for (int layer = 0; layer < 128; ++layer) {
    const LayerRef ref = plan.at(layer, ModelConfig{});
    const LayerRef owner = plan.at(ref.source, ModelConfig{});
    const auto reader = static_cast<std::size_t>(ref.kind);
    const auto kind = static_cast<std::size_t>(owner.kind);
    if (reader >= N || kind >= N || reader == kind) continue;
    if (ref.source == layer) continue;
    if (store_of[reader] != store_of[kind]) return SharingFault::other_cache;
    if (bounded[kind] && !bounded[reader]) return SharingFault::wider_window;
  }
  return SharingFault::none;
}

// Every layer is of kind 0 and owns its state.
struct Uniform {
  constexpr LayerRef at(int layer, const ModelConfig&) const { return {0, layer}; }
};

// Kind 0 for the first `leading_dense_block_count` layers, kind 1 for the others (DeepSeek).
struct FirstThen {
  constexpr LayerRef at(int layer, const ModelConfig& config) const {
    const double first = config.number_or("leading_dense_block_count", 0);
    return {static_cast<double>(layer) < first ? 0 : 1, layer};
  }
};

}  // namespace tenon::inline TENON_ABI
