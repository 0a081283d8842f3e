// expect: tenon: GqaSpec::heads must be a multiple of kv_heads
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
inline constexpr GqaSpec spec{.heads = 6, .kv_heads = 4};
#else
inline constexpr GqaSpec spec{.heads = 8, .kv_heads = 4};
#endif
static_assert(sizeof(Gqa<spec, Causal, Rope, Contiguous<F32>>) > 0);
