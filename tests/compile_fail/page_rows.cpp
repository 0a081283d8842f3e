// expect: tenon: the rows of a page of Paged must be a power of two, such as 16 or 64
#include <tenon/cache/paged.hpp>
#include <tenon/quant/dense.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
constexpr int rows = 48;
#else
constexpr int rows = 64;
#endif
static_assert(Paged<F16, rows>::page_rows == rows);
