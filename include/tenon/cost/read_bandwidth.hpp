#pragma once
// How fast this machine reads memory: the bound that decoding is measured against.
#include <cstddef>

#include "../core/executor.hpp"
#include "../kernels/isa.hpp"

namespace tenon::inline TENON_ABI {

// Bytes per second at which all threads of `team` together read a block of `bytes` (rounded, 256
// KiB at least) over and over: the best of several passes, about a tenth of a second in all. A
// block that fits a cache measures that cache.
double read_bandwidth(std::size_t bytes, Executor& team, Isa isa);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "read_bandwidth.inl"
#endif
