#pragma once
// What the tests of the cost model share.
#include "tenon/cost/roofline.hpp"
#include "tenon/cost/shapes.hpp"

namespace published {

using tenon::cost::DenseSizes;
using namespace tenon::cost::shapes;

// The lecture's model: its formula has no norms.
constexpr tenon::cost::ModelSizes lecture(tenon::Dim kv_heads) {
  DenseSizes s = llama2_13b;
  s.kv_heads = kv_heads;
  s.norms = false;
  return tenon::cost::dense(s);
}

// Equal to a relative 1e-12.
constexpr bool same(double a, double b) {
  const double apart = a < b ? b - a : a - b;
  return apart <= 1e-12 * (b < 0 ? -b : b);
}
// Equal to the last of the digits that are printed: |a - b| at most half a unit of `digit`.
constexpr bool printed(double a, double b, double digit) {
  const double apart = a < b ? b - a : a - b;
  return apart <= digit / 2 * (1 + 1e-9);
}

}  // namespace published
