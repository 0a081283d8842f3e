#pragma once
// The plan of a checkpoint that says, layer by layer, what each is and whose rows it reads.
#include "../core/fixed_string.hpp"
#include "plan.hpp"

namespace tenon::inline TENON_ABI {

// `Kind` and `Source` name the keys of two lists with one number per layer. Without the second,
// every layer owns its state.
template <FixedString Kind, FixedString Source>
struct TablePlan {
  constexpr LayerRef at(int layer, const ModelConfig& config) const {
    return {whole(config, Kind.view(), layer),
            config.has(Source.view()) ? whole(config, Source.view(), layer) : layer};
  }

 private:
  // -1 for what is no layer or kind; the Decoder refuses it with the layer's number.
  static constexpr int whole(const ModelConfig& config, std::string_view key, int layer) {
    const double value = config.number_or_flag(key, layer);
    return value >= 0 && value < 1e6 && value == static_cast<int>(value) ? static_cast<int>(value)
                                                                         : -1;
  }
};

}  // namespace tenon::inline TENON_ABI
