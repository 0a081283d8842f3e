#pragma once
// What this machine can do at most: the bounds benchmarks print their results against. The loops
// are those of cost/peak_loops.hpp, on the calling thread plus threads - 1 more.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "tenon/core/memory.hpp"
#include "tenon/cost/peak_loops.hpp"

namespace bench {

namespace loops {
// This thread's processor time: other programs may run beside a benchmark, and do on build
// machines.
inline double thread_seconds() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
#else
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
#endif
}
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// Seconds that `threads` threads took for work(i), begun together: from the first start to the last
// end by the wall clock, and the processor time of the slowest. Each is the best of `tries`.
struct Seconds {
  double wall = 1e30, thread = 1e30;
};
template <class Work>
Seconds best_seconds(int threads, int tries, Work work) {
  struct Took {
    double start = 0, end = 0, thread = 0;
  };
  Seconds best;
  std::vector<Took> took(static_cast<std::size_t>(threads));
  std::atomic<int> waiting{0};
  const auto timed = [&](int i) {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) std::this_thread::yield();
    Took& mine = took[static_cast<std::size_t>(i)];
    mine.start = wall_seconds();
    const double start = thread_seconds();
    work(i);
    mine.thread = thread_seconds() - start;
    mine.end = wall_seconds();
  };
  for (int attempt = 0; attempt < tries; ++attempt) {
    waiting = threads;
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(timed, i);
    timed(0);
    for (std::thread& t : others) t.join();
    double start = took[0].start, end = 0, thread = 0;
    for (const Took& each : took) {
      start = (std::min)(start, each.start);
      end = (std::max)(end, each.end);
      thread = (std::max)(thread, each.thread);
    }
    best.wall = (std::min)(best.wall, end - start);
    best.thread = (std::min)(best.thread, thread);
  }
  return best;
}
inline volatile double sink;
}  // namespace loops

// 10^9 units of work per second, of wall-clock time and of the threads' own processor time. They
// agree on a quiet machine; where other programs run, the second is what the threads would do
// without them.
struct Rate {
  double wall = 0, thread = 0;
  Rate() = default;
  Rate(double work, loops::Seconds took)
      : wall(work * 1e-9 / took.wall), thread(work * 1e-9 / took.thread) {}
};

// Bounds for one instruction set. Every result is measured once per argument and remembered.
class MachineBounds {
 public:
  explicit MachineBounds(tenon::Isa isa = tenon::choose_isa()) : isa_(isa) {}

  // Bytes/s read from a buffer of `bytes` in all, each thread its own part. Choose the footprint of
  // the workload: a buffer that fits a cache is that cache's bandwidth.
  Rate read(int threads, std::size_t bytes = std::size_t{512} << 20) {
    Rate& known = read_[{threads, bytes}];
    if (known.wall > 0) return known;
    tenon::AlignedBuffer buffer(bytes);
    std::memset(buffer.data(), 0, bytes);
    const std::size_t part = bytes / static_cast<std::size_t>(threads) / 512 * 512;
    const int repeats =
        static_cast<int>((std::max)(std::size_t{1}, (std::size_t{64} << 20) / bytes));
    const auto* data = reinterpret_cast<const float*>(buffer.data());
    const auto floats = static_cast<tenon::Dim>(part / sizeof(float));
    const tenon::cost::ReadLoop loop = tenon::cost::read_loop(isa_);
    const loops::Seconds took = loops::best_seconds(threads, 7, [&](int i) {
      double sum = 0;
      for (int k = 0; k < repeats; ++k) sum += static_cast<double>(loop(data + i * floats, floats));
      loops::sink = sum;
    });
    return known = Rate(static_cast<double>(part) * threads * repeats, took);
  }
  // Float operations/s of fused multiply-adds in registers, an fma being two.
  Rate f32(int threads = 1) { return once(fma_[threads], threads, tenon::cost::float_loop(isa_)); }
  // Operations/s of int8 dot products in vector registers, a product and its addition being two.
  Rate int8(int threads = 1) {
    using tenon::Isa;
    return once(dot_[threads], threads,
                tenon::cost::byte_loop(isa_ == Isa::amx ? Isa::avx512vnni : isa_));
  }
  // The same of int8 tile products, whatever the instruction set chosen; 0 where there are none.
  Rate int8_tiles(int threads = 1) {
    if (!tenon::supported(tenon::Isa::amx)) return {};
    return once(tile_[threads], threads, tenon::cost::byte_loop(tenon::Isa::amx));
  }

  // Of processor time.
  double read_gbps(int threads, std::size_t bytes = std::size_t{512} << 20) {
    return read(threads, bytes).thread;
  }
  double f32_gflops(int threads = 1) { return f32(threads).thread; }
  double int8_gops(int threads = 1) { return int8(threads).thread; }

 private:
  Rate once(Rate& known, int threads, const tenon::cost::ArithmeticLoop& loop) const {
    if (known.wall > 0) return known;
    const tenon::Dim rounds = isa_ == tenon::Isa::scalar ? 1'000 : 100'000;
    const loops::Seconds took = loops::best_seconds(
        threads, 50, [&](int) { loops::sink = static_cast<double>(loop.run(rounds)); });
    return known = Rate(loop.operations * static_cast<double>(rounds) * threads, took);
  }

  tenon::Isa isa_;
  std::map<std::pair<int, std::size_t>, Rate> read_;
  std::map<int, Rate> fma_, dot_, tile_;
};

}  // namespace bench
