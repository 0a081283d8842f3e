#pragma once
// Loops that reach a machine's bounds because they do nothing else. What times them is elsewhere.
#include "../core/types.hpp"
#include "../kernels/isa.hpp"

namespace tenon::inline TENON_ABI::cost {

// run(rounds) does that many rounds of `operations` operations each on the calling thread; a
// multiplication and its addition are two. It returns what depends on all of them.
struct ArithmeticLoop {
  float (*run)(Dim rounds);
  double operations;
};
// Fused multiply-adds on registers of floats; those of AVX-512 for the instruction sets above it.
ArithmeticLoop float_loop(Isa isa);
// Dot products of bytes: on vector registers, for Isa::amx on tile registers.
ArithmeticLoop byte_loop(Isa isa);

// The sum of n floats, n a multiple of 128.
using ReadLoop = float (*)(const float* data, Dim n);
ReadLoop read_loop(Isa isa);

}  // namespace tenon::inline TENON_ABI::cost

#if !defined(TENON_COMPILED)
#include "peak_loops.inl"
#endif
