#pragma once
// What this machine can do at most: the bounds benchmarks print their results against. Measured
// with loops that do nothing else, on the calling thread plus threads - 1 more.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "amx_peak.hpp"
#include "tenon/core/memory.hpp"
#include "tenon/kernels/isa.hpp"
#include "tenon/kernels/lanes_avx2.hpp"
#include "tenon/kernels/lanes_avx512.hpp"
#include "tenon/kernels/lanes_scalar.hpp"

namespace bench {

namespace loops {
// Every loop over registers, at any optimisation level: an array of them must never be memory.
#if defined(__clang__)
#define BENCH_UNROLL _Pragma("unroll")
#else
#define BENCH_UNROLL _Pragma("GCC unroll 24")
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
// Each returns something that depends on all its work; what only computes is spelled in assembly,
// because a compiler merges chains it can prove equal.
inline double read_scalar(const std::byte* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + i, 8);
    sum += word;
  }
  return static_cast<double>(sum);
}
#if defined(__x86_64__)
// Eight places at once: one stream of reads does not fill the memory system.
TENON_TARGET("avx2") inline double read_avx2(const std::byte* data, std::size_t bytes) {
  __m256i sum[8];
  BENCH_UNROLL
  for (int j = 0; j < 8; ++j) sum[j] = _mm256_setzero_si256();
  const std::size_t part = bytes / 8 / 64 * 64;
  for (std::size_t i = 0; i < part; i += 64) {
    const std::byte* at = data + i;
    BENCH_UNROLL
    for (int j = 0; j < 8; ++j, at += part) {
      sum[j] = _mm256_add_epi64(sum[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
      sum[j] =
          _mm256_add_epi64(sum[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32)));
    }
  }
  BENCH_UNROLL
  for (int j = 1; j < 8; ++j) sum[0] = _mm256_add_epi64(sum[0], sum[j]);
  return static_cast<double>(_mm256_extract_epi64(sum[0], 0) + _mm256_extract_epi64(sum[0], 3));
}
TENON_TARGET("avx512f") inline double read_avx512(const std::byte* data, std::size_t bytes) {
  __m512i sum[8];
  BENCH_UNROLL
  for (int j = 0; j < 8; ++j) sum[j] = _mm512_setzero_si512();
  const std::size_t part = bytes / 8 / 64 * 64;
  for (std::size_t i = 0; i < part; i += 64) {
    const std::byte* at = data + i;
    BENCH_UNROLL
    for (int j = 0; j < 8; ++j, at += part)
      sum[j] = _mm512_add_epi64(sum[j], _mm512_loadu_si512(at));
  }
  BENCH_UNROLL
  for (int j = 1; j < 8; ++j) sum[0] = _mm512_add_epi64(sum[0], sum[j]);
  return static_cast<double>(_mm512_reduce_add_epi64(sum[0]));
}
// `rounds` rounds of 24 (AVX2: 12) independent fma on 16 (8) lanes.
TENON_TARGET("avx512f") inline double fma_avx512(long rounds) {
  __m512 acc[24];
  BENCH_UNROLL
  for (int j = 0; j < 24; ++j) acc[j] = _mm512_set1_ps(1.0f + static_cast<float>(j));
  const __m512 x = _mm512_set1_ps(0.5f);
  for (long i = 0; i < rounds; ++i) {
    BENCH_UNROLL
    for (int j = 0; j < 24; ++j) {
      asm volatile("vfmadd213ps %1, %1, %0" : "+v"(acc[j]) : "v"(x));
    }
  }
  __m512 sum = acc[0];
  BENCH_UNROLL
  for (int j = 1; j < 24; ++j) sum = _mm512_add_ps(sum, acc[j]);
  return static_cast<double>(_mm512_reduce_add_ps(sum));
}
TENON_TARGET("avx2,fma") inline double fma_avx2(long rounds) {
  __m256 acc[12];
  BENCH_UNROLL
  for (int j = 0; j < 12; ++j) acc[j] = _mm256_set1_ps(1.0f + static_cast<float>(j));
  const __m256 x = _mm256_set1_ps(0.5f);
  for (long i = 0; i < rounds; ++i) {
    BENCH_UNROLL
    for (int j = 0; j < 12; ++j) {
      asm volatile("vfmadd213ps %1, %1, %0" : "+x"(acc[j]) : "x"(x));
    }
  }
  __m256 sum = acc[0];
  BENCH_UNROLL
  for (int j = 1; j < 12; ++j) sum = _mm256_add_ps(sum, acc[j]);
  return static_cast<double>(_mm256_cvtss_f32(sum));
}
TENON_TARGET("avx512f,avx512vnni") inline double dot_vnni(long rounds) {
  __m512i acc[24];
  BENCH_UNROLL
  for (int j = 0; j < 24; ++j) acc[j] = _mm512_set1_epi32(j);
  const __m512i x = _mm512_set1_epi8(1);
  for (long i = 0; i < rounds; ++i) {
    BENCH_UNROLL
    for (int j = 0; j < 24; ++j) {
      asm volatile("vpdpbusd %1, %1, %0" : "+v"(acc[j]) : "v"(x));
    }
  }
  __m512i sum = acc[0];
  BENCH_UNROLL
  for (int j = 1; j < 24; ++j) sum = _mm512_add_epi32(sum, acc[j]);
  return static_cast<double>(_mm512_reduce_add_epi32(sum));
}
TENON_TARGET("avx512f,avx512bw") inline double dot_avx512(long rounds) {
  __m512i acc[8];
  BENCH_UNROLL
  for (int j = 0; j < 8; ++j) acc[j] = _mm512_set1_epi32(j);
  const __m512i x = _mm512_set1_epi8(1);
  const __m512i ones = _mm512_set1_epi16(1);
  for (long i = 0; i < rounds; ++i) {
    BENCH_UNROLL
    for (int j = 0; j < 8; ++j) {
      __m512i pairs;
      asm volatile("vpmaddubsw %1, %1, %0" : "=v"(pairs) : "v"(x));
      acc[j] = _mm512_add_epi32(acc[j], _mm512_madd_epi16(pairs, ones));
    }
  }
  __m512i sum = acc[0];
  BENCH_UNROLL
  for (int j = 1; j < 8; ++j) sum = _mm512_add_epi32(sum, acc[j]);
  return static_cast<double>(_mm512_reduce_add_epi32(sum));
}
TENON_TARGET("avx2") inline double dot_avx2(long rounds) {
  __m256i acc[8];
  BENCH_UNROLL
  for (int j = 0; j < 8; ++j) acc[j] = _mm256_set1_epi32(j);
  const __m256i x = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  for (long i = 0; i < rounds; ++i) {
    BENCH_UNROLL
    for (int j = 0; j < 8; ++j) {
      __m256i pairs;
      asm volatile("vpmaddubsw %1, %1, %0" : "=x"(pairs) : "x"(x));
      acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(pairs, ones));
    }
  }
  __m256i sum = acc[0];
  BENCH_UNROLL
  for (int j = 1; j < 8; ++j) sum = _mm256_add_epi32(sum, acc[j]);
  return static_cast<double>(_mm256_extract_epi32(sum, 0));
}
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#undef BENCH_UNROLL

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
    std::memset(buffer.data(), 1, bytes);
    const std::size_t part = bytes / static_cast<std::size_t>(threads) / 512 * 512;
    const int repeats =
        static_cast<int>((std::max)(std::size_t{1}, (std::size_t{64} << 20) / bytes));
    const loops::Seconds took = loops::best_seconds(threads, 7, [&](int i) {
      double sum = 0;
      for (int k = 0; k < repeats; ++k) {
        sum += read_part(buffer.data() + static_cast<std::size_t>(i) * part, part);
      }
      loops::sink = sum;
    });
    return known = Rate(static_cast<double>(part) * threads * repeats, took);
  }
  // Float operations/s of fused multiply-adds in registers, an fma being two.
  Rate f32(int threads = 1) {
    return once(fma_[threads], threads, 2.0 * lanes() * (wide() ? 24 : 12), &MachineBounds::fma);
  }
  // Operations/s of int8 dot products in vector registers, a product and its addition being two.
  Rate int8(int threads = 1) {
    return once(dot_[threads], threads, 8.0 * lanes() * (vnni() ? 24 : 8), &MachineBounds::dot);
  }
  // The same of int8 tile products, whatever the instruction set chosen; 0 where there are none.
  Rate int8_tiles(int threads = 1) {
    if (!amx::usable()) return {};
    return once(tile_[threads], threads, amx::operations_per_round, &MachineBounds::tiles);
  }

  // Of processor time.
  double read_gbps(int threads, std::size_t bytes = std::size_t{512} << 20) {
    return read(threads, bytes).thread;
  }
  double f32_gflops(int threads = 1) { return f32(threads).thread; }
  double int8_gops(int threads = 1) { return int8(threads).thread; }

 private:
  bool wide() const { return isa_ >= tenon::Isa::avx512; }
  bool vnni() const { return isa_ >= tenon::Isa::avx512vnni; }
  double lanes() const { return wide() ? 16 : 8; }
  Rate once(Rate& known, int threads, double each, double (MachineBounds::*work)(long) const) {
    if (known.wall > 0) return known;
    const long rounds = 100'000;
    const loops::Seconds took =
        loops::best_seconds(threads, 50, [&](int) { loops::sink = (this->*work)(rounds); });
    return known = Rate(each * static_cast<double>(rounds) * threads, took);
  }
  double read_part(const std::byte* data, std::size_t bytes) const {
#if defined(__x86_64__)
    if (wide()) return loops::read_avx512(data, bytes);
    if (isa_ == tenon::Isa::avx2) return loops::read_avx2(data, bytes);
#endif
    return loops::read_scalar(data, bytes);
  }
  double fma(long rounds) const {
#if defined(__x86_64__)
    if (wide()) return loops::fma_avx512(rounds);
    if (tenon::supported(tenon::Isa::avx2)) return loops::fma_avx2(rounds);
#endif
    return static_cast<double>(rounds);
  }
  double dot(long rounds) const {
#if defined(__x86_64__)
    if (vnni()) return loops::dot_vnni(rounds);
    if (wide()) return loops::dot_avx512(rounds);
    if (tenon::supported(tenon::Isa::avx2)) return loops::dot_avx2(rounds);
#endif
    return static_cast<double>(rounds);
  }
  double tiles(long rounds) const {
    return amx::multiply(rounds);
  }

  tenon::Isa isa_;
  std::map<std::pair<int, std::size_t>, Rate> read_;
  std::map<int, Rate> fma_, dot_, tile_;
};

}  // namespace bench
