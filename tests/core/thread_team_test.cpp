// The thread team: every worker runs once, memory is visible afterwards, many teams and threads.
#include "tenon/core/thread_team.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "decode/contains.hpp"

using namespace tenon;

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
