// expect: tenon: MoeSpec::shared_gate needs MoeSpec::shared
#include <tenon/nn/moe.hpp>
using namespace tenon;

#ifndef TENON_EXPECT_FAIL
inline constexpr MoeSpec spec{.shared = true, .shared_gate = true};
#else
inline constexpr MoeSpec spec{.shared_gate = true};
#endif
static_assert(sizeof(Moe<spec>::Weights<F32>) > 0);
