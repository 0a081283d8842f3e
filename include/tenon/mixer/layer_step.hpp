#pragma once
// What a layer is told about the step it is part of.
#include <span>

#include "../core/batch.hpp"
#include "../nn/rotary.hpp"

namespace tenon::inline TENON_ABI {

// Which slot of its store a layer uses. A layer that reads another's rows does not own the slot and
// never writes to it.
struct Slot {
  int index = 0;
  bool owns = true;
};

struct LayerStep {
  Step batch;
  std::span<const RotaryAngles> angles;  // by the index that rotary() gave at bind
  MatView<const float> layer_inputs;     // [tokens, layers x n], of models that feed every layer
  int layer = 0;
};

}  // namespace tenon::inline TENON_ABI
