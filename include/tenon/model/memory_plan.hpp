#pragma once
// What running a model will take, before it is loaded.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/cpu_count.hpp"
#include "../core/error.hpp"
#include "../core/executor.hpp"
#include "../core/types.hpp"
#include "session_options.hpp"

namespace tenon::inline TENON_ABI {

// The caches of the layers of one kind (its number in the type's Kinds) that own rows.
struct KindPlan {
  int kind = 0, layers = 0;
  Dim rows_back = 0;  // how far its mask looks; 0: over all rows
  std::size_t bytes = 0;
};

// Bytes that a model and one session hold, constant while it runs. Not in it: the logits, which are
// the caller's, the threads' stacks, and tables of some bytes for each layer and sequence.
struct MemoryPlan {
  std::size_t weights = 0;  // matrices, packed
  std::size_t vectors = 0;  // norms, biases and the like
  std::size_t cache = 0;
  std::size_t workspace = 0;
  std::vector<KindPlan> kinds;  // whose bytes add up to cache
  std::size_t total() const { return weights + vectors + cache + workspace; }
};

// Says how many threads there would be, and runs none.
class ThreadCount final : public Executor {
 public:
  // 0: as many as this process may use, as a ThreadTeam has.
  explicit ThreadCount(int threads) : count_(threads > 0 ? threads : usable_cpus()) {}
  int threads() const override { return count_; }

 protected:
  void run_task(Task, void*) override {}

 private:
  int count_;
};

// The longest context up to `most` with which everything fits into `bytes`, the other limits being
// as given; 0 when not even one row does. For any model with memory(), also one that was bound with
// BindOptions::outline (Registry::outline does): then only headers are read.
template <class M>
int longest_context(const M& model, std::size_t bytes, Limits limits,
                    const SessionOptions& options = {}, int most = 1 << 20) {
  limits.context = 1;
  const MemoryPlan least = model.memory(limits, options);
  const std::size_t fixed = least.total() - least.cache;
  const auto fits = [&](int context) {
    limits.context = context;
    try {
      return checked_add(fixed, model.cache_bytes(limits, options.cache)) <= bytes;
    } catch (const CapacityError&) {
      return false;  // it leaves the address space
    }
  };
  if (!fits(1)) return 0;
  int low = 1, high = (std::max)(most, 1);  // `low` fits
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace tenon::inline TENON_ABI
