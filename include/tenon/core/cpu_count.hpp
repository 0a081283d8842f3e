#pragma once
// How many CPUs this process may really use: the affinity mask, cut by the control group's quota.
#include <string>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// CPUs granted by a control group below `root`, rounded up; 0: no limit stated. Version 2 has
// "cpu.max" ("quota period" or "max period"), version 1 "cpu/cpu.cfs_quota_us" and "..._period_us".
int cgroup_cpus(const std::string& root);
}  // namespace detail

int usable_cpus();

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "cpu_count.inl"
#endif
