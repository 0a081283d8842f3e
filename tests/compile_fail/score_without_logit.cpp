// expect: tenon: a Score must provide `float logit(float score, int head, int query, int key)
// const`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct SoftCap {
#ifndef TENON_EXPECT_FAIL
  float logit(float score, int, int, int) const {
    return 50 * score;
  }
#endif
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Rope, Contiguous<F32>, SoftCap>) > 0);
