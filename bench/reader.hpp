#pragma once
// Reads as many bytes as a piece of work does, in turns with it: the bound that moves as the load
// of the machine does.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "tenon/core/executor.hpp"
#include "tenon/core/memory.hpp"
#include "tenon/cost/peak_loops.hpp"

namespace bench {

using namespace tenon;

// Of one thread its processor time: other programs may run beside a benchmark.
inline double now(bool alone) {
#if defined(CLOCK_THREAD_CPUTIME_ID)
  timespec time{};
  if (alone && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
#endif
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
inline double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

// Passes over a block of memory.
class Reader {
 public:
  Reader(std::size_t bytes, Executor& team)
      : floats_(static_cast<Dim>(bytes / sizeof(float)) / 128 * 128), block_(bytes), team_(team) {
    std::memset(block_.data(), 0, bytes);
  }
  // What reading so many bytes at the block's speed takes.
  double seconds(std::size_t bytes) {
    return seconds() * static_cast<double>(bytes) / static_cast<double>(block_.size());
  }
  double seconds() {
    const double start = now(alone());
    team_.run([&](Worker worker) {
      const Range mine = share(floats_, worker, 128);
      const auto* data = reinterpret_cast<const float*>(block_.data());
      if (read_(data + mine.begin, mine.end - mine.begin) != 0) std::abort();
    });
    return now(alone()) - start;
  }
  bool alone() const { return team_.threads() == 1; }

 private:
  cost::ReadLoop read_ = cost::read_loop(choose_isa());
  Dim floats_;
  AlignedBuffer block_;
  Executor& team_;
};

// Times of work and of reading in strict turns, W R W R: each then finds as much of its bytes in
// the last cache as the other. A block read twice in a row is partly still there, which made the
// bound up to 6 % too low on a machine with a cache of 480 MB.
struct Turns {
  std::vector<double> worked, read, ratio;  // read: the shorter one of before and after
};
template <class Work, class Undo>
Turns in_turns(Reader& reader, std::size_t bytes, int rounds, Work&& work, Undo&& undo) {
  const bool alone = reader.alone();
  Turns turns;
  double before = reader.seconds(bytes);
  for (int round = 0; round < rounds; ++round) {
    const double start = now(alone);
    work();
    turns.worked.push_back(now(alone) - start);
    const double after = reader.seconds(bytes);
    turns.read.push_back((std::min)(before, after));
    turns.ratio.push_back(turns.worked.back() / turns.read.back());
    before = after;
    undo();
  }
  return turns;
}

}  // namespace bench
