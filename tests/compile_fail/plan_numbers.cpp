// expect: tenon: the numbers of a layer plan must be such that every layer has a kind and an owner
#include <tenon/model/interleave.hpp>
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
inline constexpr SharedInRuns plan{.factor = 0};
#else
inline constexpr SharedInRuns plan{.factor = 2};
#endif
static_assert(sizeof(Decoder<Kinds<zoo::LlamaLayer<Contiguous<F32>>>, plan, F32>) > 0);
