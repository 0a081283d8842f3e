#pragma once
// A rotary key that holds the keys of several heads, one after the other.
#include "rope.hpp"

namespace tenon::inline TENON_ABI {

// Llama's rotation of the first `part` values of a head of which `turned` values would turn, over
// and over: pair i of every part turns by base^(-2i / turned), with the scaling that RopeOf reads.
// Keys: rope.dimension_count, all values that turn; rope.part_dimension_count and
// rope.head_dimension_count, `part` and `turned`. ShapeError unless the parts fill the first.
struct RepeatedRope {
  static constexpr bool rotates = true;
  Rope head{};
  Dim part = dyn, turned = dyn;
  Dim rope_dim = dyn;

  static constexpr RepeatedRope read(const ModelConfig& config, int layer) {
    RepeatedRope rope;
    rope.head = Rope::read(config, layer);
    rope.rope_dim = rope.head.rope_dim;
    rope.part = config.size("rope.part_dimension_count", layer);
    rope.turned = config.size("rope.head_dimension_count", layer);
    rope.head.rope_dim = rope.turned;
    return rope;
  }
  template <class Visitor>
  void visit(Visitor& visitor, std::vector<float>& divisors, Axis) const {
    head.visit(visitor, divisors, Axis{turned / 2, "rope.head_dimension_count / 2"});
  }
  RotaryFrequencies frequencies(Dim head_dim, std::span<const float> divisors) const {
    const Dim all = detail::turned_values(rope_dim, head_dim);
    constexpr Dim most = 1 << 16;  // no tensor's shape depends on it
    if (turned > most) {
      fail<LoadError>("rope.head_dimension_count must be at most ", most, ", it is ", turned,
                      "; the file is damaged");
    }
    if (part < 2 || part % 2 != 0 || part > turned || all % part != 0) {
      fail<ShapeError>("rope.part_dimension_count must be even, at most the head's ", turned,
                       " values, and divide rope.dimension_count, ", all, "; it is ", part,
                       "; the file is damaged");
    }
    RotaryFrequencies out = head.frequencies(turned, divisors);
    const std::vector<double> once(out.radians.begin(), out.radians.begin() + part / 2);
    out.radians.clear();
    for (Dim i = 0; i < all; i += part) {
      out.radians.insert(out.radians.end(), once.begin(), once.end());
    }
    return out;
  }
};
static_assert(Position<RepeatedRope>);

}  // namespace tenon::inline TENON_ABI
