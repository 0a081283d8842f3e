// expect: tenon: a bounded Mask must provide `int rows_back() const`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Near {
  static constexpr bool bounded = true, looks_ahead = false;
  Rows reach(Rows queries, int) const { return {queries.low, queries.high}; }
  Coverage classify(Rows, Rows) const { return Coverage::partial; }
  bool keep(int query, int key) const { return key == query; }
#ifndef TENON_EXPECT_FAIL
  int rows_back() const {
    return 1;
  }
#endif
};
static_assert(sizeof(Gqa<GqaSpec{}, Near, Rope, Contiguous<F32>>) > 0);
