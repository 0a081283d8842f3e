#pragma once
// How work is spread over threads. The library asks for one thing: run this on all your threads.
#include <type_traits>
#include <utility>

#include "types.hpp"

namespace tenon::inline TENON_ABI {

// What each thread is told: it is number `index` of `count`.
struct Worker {
  int index = 0, count = 1;
};

// A half-open range of work items.
struct Range {
  Dim begin = 0, end = 0;
  constexpr bool empty() const { return begin >= end; }
};

// The share of `items` that falls to `worker` when handed out in whole groups of `group`.
constexpr Range share(Dim items, Worker worker, Dim group = 1) {
  const Dim groups = (items + group - 1) / group;
  const Dim low = groups * worker.index / worker.count * group;
  const Dim high = groups * (worker.index + 1) / worker.count * group;
  return {low, high < items ? high : items};
}

// Runs tasks. Implement it to lend tenon an application's own threads; results never depend on it.
class Executor {
 public:
  virtual ~Executor() = default;
  // How many workers run() starts: at least one, and always the same number.
  virtual int threads() const = 0;
  // Calls work({i, threads()}) once for every i below threads(), concurrently or not, and returns
  // when all have returned. `work` does not throw, does not call run() and needs 256 KB of stack.
  // An executor that several sessions share must take calls from their threads at once.
  template <class Fn>
  void run(Fn&& work) {
    using Body = std::remove_reference_t<Fn>;
    run_task([](void* body, Worker worker) noexcept { (*static_cast<Body*>(body))(worker); },
             const_cast<void*>(static_cast<const void*>(&work)));
  }

 protected:
  using Task = void (*)(void*, Worker) noexcept;
  virtual void run_task(Task task, void* body) = 0;
};

// Everything on the calling thread.
class SerialExecutor final : public Executor {
 public:
  int threads() const override { return 1; }

 protected:
  void run_task(Task task, void* body) override { task(body, {0, 1}); }
};

}  // namespace tenon::inline TENON_ABI
