// expect: tenon: a Position must state `static constexpr bool rotates`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Nowhere {
#ifndef TENON_EXPECT_FAIL
  static constexpr bool rotates = false;
#endif
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Nowhere, Contiguous<F32>>) > 0);
