// expect: tenon: a sampling step is called as step(Candidates&) or step(Candidates&, const
// DrawContext&)
#include <tenon/decode/chain.hpp>

struct Ban {
#ifdef TENON_EXPECT_FAIL
  void operator()(int token) const;
#else
  void operator()(tenon::Candidates& candidates) const;
#endif
};

tenon::Chain<tenon::TopK, Ban> make() {
  return tenon::Chain(8, 0, tenon::TopK{4}, Ban{});
}
