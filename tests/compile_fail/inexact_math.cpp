// expect: tenon: -ffast-math and -ffinite-math-only break the exact equalities tenon promises
// flags: -ffast-math
#include <tenon/core/abi.hpp>
