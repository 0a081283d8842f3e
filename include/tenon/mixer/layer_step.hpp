#pragma once
// What a mixer is told about the step it is part of.
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
};

}  // namespace tenon::inline TENON_ABI
