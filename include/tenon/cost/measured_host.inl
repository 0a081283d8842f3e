#pragma once
#include <algorithm>
#include <chrono>

#include "../core/physical_memory.hpp"
#include "measured_host.hpp"

#define TENON_LEAF_FILE "../cost/peak_leaves.inl"
#include "../kernels/for_each_isa.inl"

namespace tenon::inline TENON_ABI::cost {

TENON_INLINE double peak_flops(Executor& team, Isa isa) {
  auto work = scalar::multiply_adds;
  double flops = 32.0 * scalar::accumulators;
#if defined(__x86_64__)
  if (isa == Isa::avx2) {
    work = avx2::multiply_adds;
    flops = 32.0 * avx2::accumulators;
  }
  if (isa >= Isa::avx512) {
    work = avx512::multiply_adds;
    flops = 32.0 * avx512::accumulators;
  }
#elif defined(__aarch64__)
  if (isa >= Isa::neon) {
    work = neon::multiply_adds;
    flops = 32.0 * neon::accumulators;
  }
#endif
  const Dim rounds = isa == Isa::scalar ? 1 << 12 : 1 << 18;
  volatile float sink = 0;
  double best = 0, spent = 0;
  for (int pass = 0; pass < 3 || spent < 0.1; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    team.run([&](Worker) {
      const float sum = work(rounds);
      if (!(sum >= 0)) sink = sum;
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += seconds;
    best = (std::max)(best, flops * static_cast<double>(rounds) * team.threads() / seconds);
  }
  return best;
}

TENON_INLINE Hardware measured_host(Executor& team, Isa isa, std::size_t bytes) {
  Hardware host{"host"};
  host.f32 = host.bf16 = peak_flops(team, isa);
  host.int8 = host.f32 * byte_products(isa);
  host.bandwidth = host.host_link = read_bandwidth(bytes, team, isa);
  if (const std::size_t memory = physical_memory(); memory > 0) {
    host.memory = static_cast<double>(memory);
  }
  return host;
}

}  // namespace tenon::inline TENON_ABI::cost
