#pragma once
// The default Executor: a fixed team of threads that spins briefly between tasks and then sleeps.
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu_count.hpp"
#include "error.hpp"
#include "executor.hpp"

namespace tenon::inline TENON_ABI {

class ThreadTeam final : public Executor {
 public:
  static constexpr int most = 1024;

  // `threads` workers, the calling thread being one of them; 0: as many as this process may use.
  explicit ThreadTeam(int threads = 0);
  ~ThreadTeam() override { dismiss(); }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const override { return count_; }

 protected:
  void run_task(Task task, void* body) override;

 private:
  static void pause();
  // Spins, then blocks, until the value satisfies `done`; returns it.
  template <class T, class Done>
  T wait_until(const std::atomic<T>& value, Done done) const;
  void serve(int index);
  void dismiss();

  std::mutex running_;
  int count_;
  int spins_ = 0;
  Task task_ = nullptr;
  void* body_ = nullptr;
  alignas(64) std::atomic<unsigned> round_{0};
  std::atomic<bool> closing_{false};
  alignas(64) std::atomic<int> waiting_{0};
  std::vector<std::thread> members_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "thread_team.inl"
#endif
