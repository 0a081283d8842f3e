// expect: tenon: MlaSpec::kv_rank must be positive or dyn
#include <tenon/zoo/deepseek2.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
inline constexpr MlaSpec spec{.kv_rank = 0};
#else
inline constexpr MlaSpec spec{.kv_rank = 512};
#endif
static_assert(sizeof(Mla<spec, Causal, Yarn, Contiguous<F32>>) > 0);
