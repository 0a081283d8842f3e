#pragma once
// This machine as Hardware, measured.
#include "hardware.hpp"
#include "read_bandwidth.hpp"

namespace tenon::inline TENON_ABI::cost {

// FLOPs per second of all threads of `team` together in fused multiply-adds on registers: the best
// of several passes, about a tenth of a second in all.
double peak_flops(Executor& team, Isa isa);

// The same of integer operations in dot products of bytes; of tile products where `isa` has them.
double peak_byte_operations(Executor& team, Isa isa);

// Bandwidth of reading `bytes` and the peaks of floats and of bytes are measured; bf16 is computed
// as floats are. `memory` is what the system has; 0 where it does not say.
Hardware measured_host(Executor& team, Isa isa, std::size_t bytes = std::size_t{1} << 28);

}  // namespace tenon::inline TENON_ABI::cost

#if !defined(TENON_COMPILED)
#include "measured_host.inl"
#endif
