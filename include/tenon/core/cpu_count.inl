#pragma once
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

#include "cpu_count.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

TENON_INLINE int cgroup_cpus(const std::string& root) {
  double quota = 0, period = 0;
  std::string first;
  if (std::ifstream v2(root + "/cpu.max"); v2 >> first >> period && first != "max") {
    quota = std::strtod(first.c_str(), nullptr);
  } else {
    std::ifstream(root + "/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream(root + "/cpu/cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0 && period > 0)) return 0;
  return static_cast<int>((std::min)((quota + period - 1) / period, 4096.0));
}

}  // namespace detail

TENON_INLINE int usable_cpus() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
  if (const int quota = detail::cgroup_cpus("/sys/fs/cgroup"); quota > 0) {
    count = (std::min)(count, quota);
  }
#endif
  return (std::max)(count, 1);
}

}  // namespace tenon::inline TENON_ABI
