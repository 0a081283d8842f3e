// expect: tenon: MlaSpec::rope_dim must be even and positive, or dyn
#include <tenon/zoo/deepseek2.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
inline constexpr MlaSpec spec{.rope_dim = 63};
#else
inline constexpr MlaSpec spec{.rope_dim = 64};
#endif
static_assert(sizeof(Mla<spec, Causal, Yarn, Contiguous<F32>>) > 0);
