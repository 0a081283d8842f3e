// An executor whose workers run one after another, the last one first: a division of work must not
// depend on their order.
#pragma once
#include "tenon/core/executor.hpp"

class Backwards final : public tenon::Executor {
 public:
  explicit Backwards(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }

 protected:
  void run_task(Task task, void* body) override {
    for (int i = threads_; i-- > 0;) task(body, {i, threads_});
  }

 private:
  int threads_;
};
