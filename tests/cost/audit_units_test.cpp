// Units that count and units that do not are linked into one program, and each keeps its own
// functions.
#define TENON_COUNT_COST

#include <cmath>

#include "catch.hpp"
#include "cost/plain_unit.hpp"
#include "tenon/kernels/cpu.hpp"

using namespace tenon;

static_assert(counts_cost);

TEST_CASE("audit: a unit that does not count touches no counter, in one program with one that does",
          "[cost][audit]") {
  const auto norm = [](float* x, const float* gain, int n) {
    SerialExecutor executor;
    Workspace workspace(64);
    Cpu cpu(Isa::scalar, Activations::f32, executor, workspace);
    cpu.rms_norm(matrix<const float>(x, 1, n), gain, 1e-5f, matrix(x, 1, n));
  };
  float x[]{3, 4}, same[]{3, 4};
  const float gain[]{1, 2};
  CostCounter::clear();
  plain_norm(x, gain, 2);
  CHECK(CostCounter::of(CostPart::linear).bytes == 0);
  norm(same, gain, 2);
  CHECK(CostCounter::of(CostPart::linear).bytes == 2 * 4);
  CHECK(x[1] == Approx(2 * 4 / std::sqrt(12.5 + 1e-5)));
  CHECK(x[0] == same[0]);
  CHECK(x[1] == same[1]);
}
