// expect: tenon: a Sampler must be copyable, so that a forked sequence can fork its sampler
#include <memory>
#include <tenon/decode/sampler.hpp>

struct First {
#ifdef TENON_EXPECT_FAIL
  std::unique_ptr<int> state;
#endif
  tenon::Token sample(std::span<const float> logits, const tenon::DrawContext& at);
};

static_assert(tenon::explain_sampler<First>());
