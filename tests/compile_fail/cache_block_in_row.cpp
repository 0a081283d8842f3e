// expect: tenon: the values of a cached row must fill whole blocks of the cache's format
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
inline constexpr GqaSpec spec{.kv_heads = 1, .head_dim = 80};
#else
inline constexpr GqaSpec spec{.kv_heads = 2, .head_dim = 80};
#endif
static_assert(sizeof(Gqa<spec, Causal, Rope, Contiguous<Q8_0>>) > 0);
