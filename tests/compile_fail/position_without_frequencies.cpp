// expect: tenon: a Position that rotates must provide `RotaryFrequencies frequencies(Dim head_dim
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Still {
  static constexpr bool rotates = true;
  Dim rope_dim = dyn;
#ifndef TENON_EXPECT_FAIL
  RotaryFrequencies frequencies(Dim, std::span<const float>) const {
    return {};
  }
#endif
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Still, Contiguous<F32>>) > 0);
