// expect: tenon: Scores takes at most one hook with a sink
#include <tenon/attn/score_hooks.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
static_assert(sizeof(Scores<LearnedSinks, LearnedSinks>) > 0);
#else
static_assert(sizeof(Scores<SoftCap, LearnedSinks>) > 0);
#endif
