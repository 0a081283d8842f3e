// The thread team: every worker runs once, memory is visible afterwards, many teams and threads.
#include "tenon/core/thread_team.hpp"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "decode/contains.hpp"

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

TEST_CASE("each worker runs exactly once a task, and what it wrote is seen", "[threads]") {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadTeam team(threads);
    CHECK(team.threads() == threads);
    std::vector<int> runs(static_cast<std::size_t>(threads));  // not atomic: run() must order it
    for (int round = 1; round <= 300; ++round) {
      team.run([&](Worker worker) {
        if (worker.count == threads) ++runs[static_cast<std::size_t>(worker.index)];
      });
      for (const int n : runs) REQUIRE(n == round);
    }
  }
}

TEST_CASE("shares of any division cover all items once", "[threads]") {
  for (const Dim items : {0, 1, 5, 16, 17, 1000}) {
    for (const int count : {1, 2, 3, 7, 40}) {
      for (const Dim group : {1, 4, 128}) {
        Dim next = 0;
        for (int i = 0; i < count; ++i) {
          const Range mine = share(items, {i, count}, group);
          CHECK(mine.begin == (std::min)(next, items));
          CHECK((mine.begin % group == 0 || mine.begin == items));
          next = (std::max)(next, mine.end);
        }
        CHECK(next == items);
      }
    }
  }
}

TEST_CASE("several teams work at once", "[threads]") {
  std::atomic<long> total{0};
  std::vector<std::thread> drivers;
  for (int d = 0; d < 4; ++d) {
    drivers.emplace_back([&] {
      ThreadTeam team(3);
      for (int r = 0; r < 200; ++r) team.run([&](Worker worker) { total += worker.index; });
    });
  }
  for (std::thread& driver : drivers) driver.join();
  CHECK(total == 4L * 200 * (0 + 1 + 2));
}

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

TEST_CASE("the number of threads is checked", "[threads]") {
  CHECK_THROWS_WITH(ThreadTeam(-1), contains("0 (choose) to 1024") && contains("-1"));
  CHECK_THROWS_AS(ThreadTeam(5000), RequestError);
  CHECK(ThreadTeam(0).threads() == usable_cpus());
}

TEST_CASE("quotas of control groups, versions 2 and 1", "[threads]") {
  const auto root = std::filesystem::temp_directory_path() / "tenon_cgroup_test";
  std::filesystem::create_directories(root / "cpu");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(root / name) << text;
  };
  write("cpu.max", "150000 100000\n");
  CHECK(detail::cgroup_cpus(root.string()) == 2);
  write("cpu.max", "50000 100000\n");
  CHECK(detail::cgroup_cpus(root.string()) == 1);
  write("cpu.max", "max 100000\n");
  CHECK(detail::cgroup_cpus(root.string()) == 0);
  std::filesystem::remove(root / "cpu.max");
  write("cpu/cpu.cfs_quota_us", "400000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  CHECK(detail::cgroup_cpus(root.string()) == 4);
  write("cpu/cpu.cfs_quota_us", "-1\n");
  CHECK(detail::cgroup_cpus(root.string()) == 0);
  std::filesystem::remove_all(root);
  CHECK(detail::cgroup_cpus(root.string()) == 0);
}
