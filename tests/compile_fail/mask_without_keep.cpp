// expect: tenon: a Mask must provide `bool keep(int query, int key) const`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Prefix {
  static constexpr bool bounded = false, looks_ahead = false;
  Rows reach(Rows, int cached) const { return {0, cached}; }
  Coverage classify(Rows, Rows) const { return Coverage::partial; }
#ifndef TENON_EXPECT_FAIL
  bool keep(int query, int key) const {
    return key <= query || key < 4;
  }
#endif
};
static_assert(sizeof(Gqa<GqaSpec{}, Prefix, Rope, Contiguous<F32>>) > 0);
