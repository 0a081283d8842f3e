// expect: tenon: a sampling step must be copyable, because a sampler is
#include <memory>
#include <tenon/decode/sampling_steps.hpp>

struct Ban {
#ifdef TENON_EXPECT_FAIL
  std::unique_ptr<int> state;
#endif
  void operator()(tenon::Candidates& candidates) const;
};

static_assert(tenon::explain_sampling_step<Ban>());
