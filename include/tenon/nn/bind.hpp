#pragma once
// How a layer's weights name the tensors they need. Every layer has `visit(visitor)`, which says
// for each tensor its name, where it goes and its axes; loading, counting and planning are
// visitors.
#include <string_view>
#include <vector>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// A size with the metadata it came from, for messages.
struct Axis {
  Dim size = 0;
  std::string_view origin;  // "embedding_length"
};

// Equal parts of a tensor that holds `period` rows for each of them: rows [first, first + rows) of
// every part, transposed or not.
struct Slice {
  Axis period;
  Dim first = 0, rows = 0;
  bool transposed = false;
};

// Visitors provide:
//   within(prefix)                                      names that follow start so: "blk.3." or ""
//   matrix(name, PackedMatrix&, Axis out, Axis in)      a linear weight, stored [out, in]
//   stack(name, std::vector<PackedMatrix>&, Axis count, Axis out, Axis in)   [count, out, in]
//   slices(name, std::vector<PackedMatrix>&, Axis count, Slice, Axis in)     a slice of each of the
//                                                       `count` parts of one stored tensor
//   vector(name, std::vector<float>&, Axis n)           must be there
//   vectors(name, std::vector<float>&, Axis count, Axis n)   stored [count, n]
//   optional_vector(name, std::vector<float>&, Axis n)  left empty when the checkpoint has none
//   rotary(RotaryFrequencies) -> int                    registers a rotation; equal ones share one
//   vectors(name, std::vector<float>&, Axis count, Axis n)   [count, n], must be there
//   has(name) -> bool
// Names are without layer prefix and without ".weight"; a name that ends in ".bias" is whole, an
// absolute one starts with '/'.

}  // namespace tenon::inline TENON_ABI
