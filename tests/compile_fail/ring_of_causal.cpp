// expect: tenon: a Ring keeps the rows that a bounded mask sees
#include <tenon/cache/ring.hpp>
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
using Sight = Causal;
#else
using Sight = SlidingWindow;
#endif
static_assert(sizeof(Gqa<GqaSpec{}, Sight, Rope, Ring<F16>>) > 0);
