// What the host is measured to be lies between what any machine does and what none does.
#include "tenon/cost/measured_host.hpp"

#include <algorithm>

#include "catch.hpp"
#include "sanitized.hpp"
#include "tenon/core/thread_team.hpp"

using namespace tenon;

namespace {
// One instruction does two products of bytes in place of one of floats where it does any, so no
// instruction set has less than half as many; tile products are eight times those of vectors.
bool agree([[maybe_unused]] const cost::Hardware& host) {
#if defined(TENON_SANITIZED)
  return true;  // sanitizers slow one loop more than another
#else
  return host.int8 > host.f32 / 2 && host.int8 < host.f32 * 128;
#endif
}
}  // namespace

TEST_CASE("the host is measured on every instruction set that it has", "[cost]") {
  ThreadTeam team(1);  // of several threads, one may be kept from its core all the time
  double scalar = 0;
  for (const Isa isa : known_isas) {
    if (!supported(isa)) continue;
    INFO(name_of(isa));
    // Other programs may slow one measurement and not the other; the best of each is the machine's.
    auto host = cost::measured_host(team, isa, 1 << 22);
    for (int again = 0; again < 10 && !(agree(host) && host.f32 >= scalar); ++again) {
      const auto other = cost::measured_host(team, isa, 1 << 22);
      host.f32 = (std::max)(host.f32, other.f32);
      host.int8 = (std::max)(host.int8, other.int8);
    }
    CHECK(host.f32 > 1e7);
    CHECK(host.f32 < 1e13);
    CHECK(host.bandwidth > 1e7);
    CHECK(host.bandwidth < 1e13);
    CHECK(host.int8 > 1e7);
    CHECK(host.int8 < 1e15);
    CHECK((host.memory == 0 || host.memory > 1e8));
    INFO(host.int8 << " operations on bytes, " << host.f32 << " on floats, scalar " << scalar);
    CHECK(agree(host));
    CHECK(host.f32 >= scalar);
    if (isa == Isa::scalar) scalar = host.f32;
  }
}
