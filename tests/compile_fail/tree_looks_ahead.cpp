// expect: tenon: Tree takes a mask that does not look ahead
#include <tenon/attn/masks.hpp>
#include <tenon/attn/tree.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
static_assert(sizeof(Tree<Bidirectional>) > 0);
#else
static_assert(sizeof(Tree<Causal>) > 0);
#endif
