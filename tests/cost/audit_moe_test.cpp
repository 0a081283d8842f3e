// What kernels count is what cost/ predicts: mixtures of experts. A prediction holds the number of
// distinct experts that a step is expected to use. It is exact where one token uses
// expert_used_count of them, and where each token uses all. In other steps the experts that were
// used are those that the routing says, or else a number within the bounds of any routing.
#include "cost/audit.hpp"
#include "tenon/nn/moe.hpp"

using namespace audit;

namespace {

template <MoeSpec Spec>
using Mixture =
    Composed<Block<Gqa<GqaSpec{}, Causal, Rope, Contiguous<CacheFormats>>, Moe<Spec>, RmsNorm>>;

std::vector<random_source::Key> experts(double count, double used, double shared = 0) {
  return audit::sizes({{"attention.head_count_kv", 2},
                       {"expert_count", count},
                       {"expert_used_count", used},
                       {"expert_shared_count", shared},
                       {"expert_feed_forward_length", 128}});
}
// Routers of zeros.
template <class M>
random_source::Source without_preference(const std::vector<random_source::Key>& keys) {
  random_source::Source source = random_source::Source::of<M>(keys, {"output"});
  for (const char* router : {"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.weight"}) {
    for (float& value : source.values(router)) value = 0;
  }
  return source;
}

}  // namespace

TEST_CASE("audit: experts, of which the number is known", "[cost][audit]") {
  Audited<Mixture<MoeSpec{}>> some(experts(16, 4)), all(experts(16, 16));
  some.check("f16", 1, {1, 1, 1});
  all.check("f16", 2, {9, 1, 20});
  Audited<Mixture<MoeSpec{.shared = true, .shared_gate = true, .bias = true}>> shared(
      experts(16, 4, 1));
  shared.check("f16", 1, {1, 1, 1});
}

TEST_CASE("audit: experts that are chosen by no token are not read", "[cost][audit]") {
  using M = Mixture<MoeSpec{}>;
  const auto keys = experts(16, 4);
  Audited<M> drawn(keys), even(without_preference<M>(keys), "f32", false);
  const cost::ModelSizes m = drawn.sizes("f16");
  // The bytes of linear layers but the experts, and those of one expert of one layer.
  cost::ModelSizes none = m;
  none.groups[0].layer.feed_forward.experts = 0;
  const Dim each = cost::expert_bytes(m.groups[0].layer, m.weights);
  for (const int tokens : {2, 5, 40}) {
    const cost::Step step{1, tokens, tokens + 1};
    const auto always = static_cast<Dim>(cost::traffic(none, step).linear);
    drawn.run_step("f16", {1}, {tokens}, Audited<M>::serial());
    CHECK(counted(CostPart::linear).flops == cost::flops(m, step).linear);
    const Dim read = counted(CostPart::linear).bytes - always;
    CHECK(read % each == 0);
    CHECK(read / each >= 2 * 4);
    CHECK(read / each <= 2 * (std::min)(16, 4 * tokens));
    // All experts alike: every token takes the first four of both layers.
    even.run_step("f16", {1}, {tokens}, Audited<M>::serial());
    CHECK(counted(CostPart::linear).flops == cost::flops(m, step).linear);
    CHECK(counted(CostPart::linear).bytes == always + 2 * 4 * each);
  }
}
