// expect: tenon: a Position that rotates must have `Dim rope_dim`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Still {
  static constexpr bool rotates = true;
#ifndef TENON_EXPECT_FAIL
  Dim rope_dim = dyn;
#endif
  RotaryFrequencies frequencies(Dim, std::span<const float>) const {
    return {};
  }
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Still, Contiguous<F32>>) > 0);
