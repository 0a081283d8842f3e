// expect: tenon: a Sampler needs a member Token sample(std::span<const float> logits, const
// DrawContext& at)
#include <tenon/decode/sampler.hpp>

struct First {
#ifndef TENON_EXPECT_FAIL
  tenon::Token sample(std::span<const float> logits, const tenon::DrawContext& at);
#endif
};

static_assert(tenon::explain_sampler<First>());
