// More threads than CPUs: slower, but never by much. Timed, so it runs alone.
#include <sched.h>

#include <chrono>

#include "catch.hpp"
#include "tenon/core/thread_team.hpp"

using namespace tenon;

namespace {

// Rounds of some hundred microseconds, like the products of a large model.
double seconds_of(ThreadTeam& team, int rounds) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> sums(static_cast<std::size_t>(team.threads()) * 8);
  for (int r = 0; r < rounds; ++r) {
    team.run([&](Worker worker) {
      const Range mine = share(300000, worker);
      double& sum = sums[static_cast<std::size_t>(worker.index) * 8];
      for (Dim i = mine.begin; i < mine.end; ++i) sum += 1.0 / static_cast<double>(i + 1);
    });
  }
  CHECK(sums[0] > 0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("sixteen threads on two CPUs are at most three times slower than two", "[threads]") {
  cpu_set_t before, two;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&two);
  for (int cpu = 0, found = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &two);
      ++found;
    }
  }
  REQUIRE(sched_setaffinity(0, sizeof two, &two) == 0);
  CHECK(usable_cpus() <= 2);
  double ratio = 1e9;
  for (int attempt = 0; attempt < 5 && ratio > 3; ++attempt) {  // the machine is shared
    ThreadTeam few(2), many(16);
    const double base = seconds_of(few, 100);
    ratio = (std::min)(ratio, seconds_of(many, 100) / base);
  }
  sched_setaffinity(0, sizeof before, &before);
  INFO("ratio " << ratio);
  CHECK(ratio <= 3);
}
