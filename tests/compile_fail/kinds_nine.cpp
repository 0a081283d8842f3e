// expect: tenon: Kinds takes 1 to 8 block types
#include <tenon/zoo/llama.hpp>
using namespace tenon;

using L = zoo::LlamaLayer<Contiguous<F32>>;
#ifdef TENON_EXPECT_FAIL
static_assert(Kinds<L, L, L, L, L, L, L, L, L>::size == 9);
#else
static_assert(Kinds<L, L, L, L, L, L, L, L>::size == 8);
#endif
