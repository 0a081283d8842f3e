#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>

#include "../core/memory.hpp"
#include "peak_loops.hpp"
#include "read_bandwidth.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE double read_bandwidth(std::size_t bytes, Executor& team, Isa isa) {
  const cost::ReadLoop read = cost::read_loop(isa);
  constexpr Dim group = 128;
  const Dim floats =
      round_up(static_cast<Dim>((std::max)(bytes, std::size_t{1} << 18) / sizeof(float)), group);
  AlignedBuffer block(static_cast<std::size_t>(floats) * sizeof(float));
  auto* data = reinterpret_cast<float*>(block.data());
  team.run([&](Worker worker) {
    const Range mine = share(floats, worker, group);
    std::memset(data + mine.begin, 0,
                static_cast<std::size_t>(mine.end - mine.begin) * sizeof(float));
  });
  volatile float sink = 0;
  double best = 0, spent = 0;
  for (int pass = 0; pass < 3 || spent < 0.1; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    team.run([&](Worker worker) {
      const Range mine = share(floats, worker, group);
      const float sum = read(data + mine.begin, mine.end - mine.begin);
      if (sum != 0) sink = sum;
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += seconds;
    best = (std::max)(best, static_cast<double>(block.size()) / seconds);
  }
  return best;
}

}  // namespace tenon::inline TENON_ABI
