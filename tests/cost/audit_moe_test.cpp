// What kernels count is what cost/ predicts: mixtures of experts. A prediction holds the number of
// distinct experts that a step is expected to use; where it is known it is exact: one token uses
// expert_used_count of them, and all are used where each token uses all. Of other steps the number
// that was used is found from the bytes, whole and within the bounds of any routing.
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

}  // namespace

TEST_CASE("audit: experts, of which the number is known", "[cost][audit]") {
  Audited<Mixture<MoeSpec{}>> some(experts(16, 4)), all(experts(16, 16));
  some.check("f16", 1, {1, 1, 1});
  all.check("f16", 2, {9, 1, 20});
  Audited<Mixture<MoeSpec{.shared = true, .shared_gate = true, .bias = true}>> shared(
      experts(16, 4, 1));
  shared.check("f16", 1, {1, 1, 1});
}

TEST_CASE("audit: the experts that a step really uses, against the bounds of any routing",
          "[cost][audit]") {
  Audited<Mixture<MoeSpec{}>> audited(experts(16, 4));
  const cost::ModelSizes m = audited.sizes("f16");
  const auto each = static_cast<double>(2 * cost::expert_bytes(m.groups[0].layer, m.weights));
  for (const int tokens : {2, 5, 40}) {
    audited.run_step("f16", {1}, {tokens}, Audited<Mixture<MoeSpec{}>>::serial());
    const cost::Step step{1, tokens, tokens + 1};
    CHECK(counted(CostPart::linear).flops == cost::flops(m, step).linear);
    const double always =
        cost::traffic(m, step).linear - each * cost::expected_experts(16, 4, tokens);
    const double used = (static_cast<double>(counted(CostPart::linear).bytes) - always) / each;
    CHECK(used >= 4);
    CHECK(used <= (std::min)(16, 4 * tokens));
    CHECK(2 * used == Approx(static_cast<double>(static_cast<int>(2 * used + 0.5))));
  }
}
