// expect: tenon: a chain set up from options needs steps with a static from(SamplingOptions) or a
// default constructor
#include <tenon/decode/chain.hpp>

struct Ban {
  explicit Ban(tenon::Token token);
  void operator()(tenon::Candidates& candidates) const;
};

auto make(const tenon::SamplingOptions& options) {
#ifdef TENON_EXPECT_FAIL
  return tenon::Chain<Ban, tenon::Temperature>(8, options);
#else
  return tenon::Chain(8, options.seed, Ban(3), tenon::Temperature{options.temperature});
#endif
}
