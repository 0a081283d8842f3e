#pragma once
#include <algorithm>
#include <chrono>

#include "../core/physical_memory.hpp"
#include "measured_host.hpp"
#include "peak_loops.hpp"

namespace tenon::inline TENON_ABI::cost {

namespace detail {
inline double peak(const ArithmeticLoop& loop, Executor& team, Isa isa) {
  const Dim rounds = isa == Isa::scalar ? 1 << 12 : 1 << 16;
  volatile float sink = 0;
  double best = 0, spent = 0;
  for (int pass = 0; pass < 3 || spent < 0.1; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    team.run([&](Worker) {
      const float sum = loop.run(rounds);
      if (!(sum >= 0)) sink = sum;
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += seconds;
    const double work = loop.operations * static_cast<double>(rounds) * team.threads();
    best = (std::max)(best, work / seconds);
  }
  return best;
}
}  // namespace detail

TENON_INLINE double peak_flops(Executor& team, Isa isa) {
  return detail::peak(float_loop(isa), team, isa);
}
TENON_INLINE double peak_byte_operations(Executor& team, Isa isa) {
  return detail::peak(byte_loop(isa), team, isa);
}

TENON_INLINE Hardware measured_host(Executor& team, Isa isa, std::size_t bytes) {
  Hardware host{"host"};
  host.f32 = host.bf16 = peak_flops(team, isa);
  host.int8 = peak_byte_operations(team, isa);
  host.bandwidth = host.host_link = read_bandwidth(bytes, team, isa);
  if (const std::size_t memory = physical_memory(); memory > 0) {
    host.memory = static_cast<double>(memory);
  }
  return host;
}

}  // namespace tenon::inline TENON_ABI::cost
