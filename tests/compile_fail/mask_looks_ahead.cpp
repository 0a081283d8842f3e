// expect: tenon: a Mask that looks ahead must provide `bool complete(int base, int count) const`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Prefix {
#ifdef TENON_EXPECT_FAIL
  static constexpr bool bounded = false, looks_ahead = true;
#else
  static constexpr bool bounded = false, looks_ahead = false;
#endif
  Rows reach(Rows, int cached) const {
    return {0, cached};
  }
  Coverage classify(Rows, Rows) const {
    return Coverage::partial;
  }
  bool keep(int query, int key) const {
    return key <= query;
  }
};
static_assert(sizeof(Gqa<GqaSpec{}, Prefix, Rope, Contiguous<F32>>) > 0);
