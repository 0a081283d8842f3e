// expect: tenon: -ffast-math and -ffinite-math-only break the exact equalities tenon promises
// flags: -ffinite-math-only
#include <tenon/core/abi.hpp>
