#pragma once
// This machine as Hardware, measured.
#include "hardware.hpp"
#include "read_bandwidth.hpp"

namespace tenon::inline TENON_ABI::cost {

// FLOPs per second of all threads of `team` together in fused multiply-adds on registers: the best
// of several passes, about a tenth of a second in all.
double peak_flops(Executor& team, Isa isa);

// Multiply-adds of bytes that one instruction does for one of floats (of registers of equal width;
// AMX: of a tile product and an AVX-512 instruction of equal time).
constexpr int byte_products(Isa isa) {
  switch (isa) {
    case Isa::scalar:
    case Isa::neon:
      return 1;
    case Isa::avx2:
    case Isa::avx512:
      return 2;
    case Isa::dotprod:
    case Isa::avx512vnni:
      return 4;
    case Isa::amx:
      return 32;
  }
  return 1;
}

// Bandwidth of reading `bytes` and peak of floats are measured; bf16 is computed as floats are, and
// the peak on bytes follows from the instruction set. `memory` is what the system has; 0 where it
// does not say.
Hardware measured_host(Executor& team, Isa isa, std::size_t bytes = std::size_t{1} << 28);

}  // namespace tenon::inline TENON_ABI::cost

#if !defined(TENON_COMPILED)
#include "measured_host.inl"
#endif
