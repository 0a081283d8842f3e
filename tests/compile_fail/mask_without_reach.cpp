// expect: tenon: a Mask must provide `Rows reach(Rows queries, int cached) const`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Prefix {
  static constexpr bool bounded = false, looks_ahead = false;
#ifndef TENON_EXPECT_FAIL
  Rows reach(Rows, int cached) const {
    return {0, cached};
  }
#endif
  Coverage classify(Rows, Rows) const {
    return Coverage::partial;
  }
  bool keep(int query, int key) const {
    return key <= query || key < 4;
  }
};
static_assert(sizeof(Gqa<GqaSpec{}, Prefix, Rope, Contiguous<F32>>) > 0);
