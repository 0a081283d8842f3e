// expect: tenon: an activation must provide `static float f(float)` or `static float gated(
#include <tenon/nn/mlp.hpp>
using namespace tenon;

struct Mystery {
#ifndef TENON_EXPECT_FAIL
  static float gated(float gate, float up) {
    return gate * up;
  }
#endif
};
static_assert(sizeof(GatedMlp<Mystery>::Weights<F32>) > 0);
