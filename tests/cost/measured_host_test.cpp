// What the host is measured to be lies between what any machine does and what none does.
#include "tenon/cost/measured_host.hpp"
#include "catch.hpp"
#include "tenon/core/thread_team.hpp"

using namespace tenon;

TEST_CASE("the host is measured on every instruction set that it has", "[cost]") {
  ThreadTeam team(2);
  for (const Isa isa : known_isas) {
    if (!supported(isa)) continue;
    INFO(name_of(isa));
    const auto host = cost::measured_host(team, isa, 1 << 22);
    CHECK(host.f32 > 1e7);
    CHECK(host.f32 < 1e13);
    CHECK(host.bandwidth > 1e7);
    CHECK(host.bandwidth < 1e13);
    // Not compared with the floats: other programs may take the machine in one of the measurements.
    CHECK(host.int8 > 1e7);
    CHECK(host.int8 < 1e15);
    CHECK((host.memory == 0 || host.memory > 1e8));
  }
}
