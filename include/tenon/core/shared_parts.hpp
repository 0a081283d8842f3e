#pragma once
// Evening out the work of one Executor::run() among its workers.
#include <array>
#include <atomic>

#include "executor.hpp"

namespace tenon::inline TENON_ABI {

// Every worker has a share of steps, takes parts of it, and then parts of what neighbours have left
// of theirs: cores are not equally fast, and not at all times. Shares stay where they are, so that
// what a worker reads it has mostly read before. One object serves one run().
class SharedParts {
 public:
  // Calls some(owner, part) for parts of `each` steps of the share of `owner`, which has
  // steps(owner) of them, until nothing is left for this worker to take.
  template <class Steps, class Some>
  void take(Worker worker, Dim each, Steps&& steps, Some&& some) {
    if (worker.count > most) return some(worker, Range{0, steps(worker)});
    const int visited = worker.count < most_visited ? worker.count : most_visited;
    for (int i = 0; i < visited; ++i) {
      const Worker owner{(worker.index + i) % worker.count, worker.count};
      const Dim end = steps(owner);
      std::atomic<Dim>& taken = shares_[static_cast<std::size_t>(owner.index)].taken;
      while (taken.load(std::memory_order_relaxed) < end) {
        const Dim begin = taken.fetch_add(each, std::memory_order_relaxed);
        if (begin < end) some(owner, Range{begin, begin + each < end ? begin + each : end});
      }
    }
  }

 private:
  // More workers than `most` keep to their own shares: looking at all others would take longer
  // than it saves, and so would clearing as many counters.
  static constexpr int most = 32, most_visited = 8;
  struct alignas(64) Share {
    std::atomic<Dim> taken{0};
  };
  std::array<Share, most> shares_;
};

}  // namespace tenon::inline TENON_ABI
