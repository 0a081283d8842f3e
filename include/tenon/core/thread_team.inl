#pragma once
#include <system_error>

#include "thread_team.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE ThreadTeam::ThreadTeam(int threads) : count_(threads == 0 ? usable_cpus() : threads) {
  if (threads < 0 || threads > most) {
    fail<RequestError>("the number of threads must be 0 (choose) to ", most, ", it is ", threads);
  }
  spins_ = count_ <= usable_cpus() ? 20000 : 0;  // oversubscribed: spinning steals the CPU
  members_.reserve(static_cast<std::size_t>(count_ - 1));
  try {
    for (int i = 1; i < count_; ++i) members_.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error&) {
    const auto started = members_.size();
    dismiss();
    fail<CapacityError>("only ", started + 1, " of ", count_,
                        " threads could be started; ask for fewer threads");
  } catch (...) {
    dismiss();
    throw;
  }
}

TENON_INLINE void ThreadTeam::run_task(Task task, void* body) {
  if (count_ == 1) {
    task(body, {0, 1});
    return;
  }
  const std::lock_guard alone(running_);  // sessions on several threads may share a team
  task_ = task;
  body_ = body;
  waiting_.store(count_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  task(body, {0, count_});
  wait_until(waiting_, [](int left) { return left == 0; });
}

TENON_INLINE void ThreadTeam::pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

template <class T, class Done>
T ThreadTeam::wait_until(const std::atomic<T>& value, Done done) const {
  T now = value.load(std::memory_order_acquire);
  for (int i = 0; i < spins_ && !done(now); ++i) {
    pause();
    now = value.load(std::memory_order_acquire);
  }
  while (!done(now)) {
    value.wait(now, std::memory_order_acquire);
    now = value.load(std::memory_order_acquire);
  }
  return now;
}

TENON_INLINE void ThreadTeam::serve(int index) {
  unsigned seen = 0;
  for (;;) {
    seen = wait_until(round_, [seen](unsigned round) { return round != seen; });
    if (closing_.load(std::memory_order_acquire)) return;
    task_(body_, {index, count_});
    if (waiting_.fetch_sub(1, std::memory_order_acq_rel) == 1) waiting_.notify_one();
  }
}

TENON_INLINE void ThreadTeam::dismiss() {
  closing_.store(true, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& member : members_) member.join();
  members_.clear();
}

}  // namespace tenon::inline TENON_ABI
