// expect: tenon: a Score that depends on the distance of rows does not work on token trees
#include <tenon/attn/score_hooks.hpp>
#include <tenon/attn/tree.hpp>
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
using Hook = Scores<SoftCap, Alibi>;
#else
using Hook = SoftCap;
#endif
static_assert(sizeof(Gqa<GqaSpec{}, Tree<Causal>, Rope, Contiguous<F32>, Hook>) > 0);
