#pragma once
// What kernels really touch, counted while they run: the audit of what cost/ predicts. Counted are
// the operations of matrices and of attention whose results are used, a multiply-add as two, and
// bytes of weights and of cached rows each time a kernel is handed them. Lanes that only fill a
// vector (rows past the end of a matrix, keys that a mask drops) are not, nor, as in cost/, the
// arithmetic of norms, activations and rotations, looked-up rows of the embedding, and biases that
// a file may have or not.
//
// Units that define TENON_COUNT_COST count; in all others nothing of this is compiled. Those that
// count have an ABI of their own, so a program may have units of both sorts.
#if defined(TENON_COUNT_COST)
#include <atomic>
#endif

#include "types.hpp"

namespace tenon::inline TENON_ABI {

// Layers without a sequence axis and projections; cached rows and what is computed on them; the
// output matrix.
enum class CostPart { linear, attention, unembedding };

struct CountedCost {
  Dim flops = 0, bytes = 0;
};

#if defined(TENON_COUNT_COST)
inline constexpr bool counts_cost = true;

// Of all threads of the program together.
class CostCounter {
 public:
  static void add(CostPart part, Dim flops, Dim bytes) noexcept {
    Counts& to = counts_[static_cast<int>(part)];
    to.flops.fetch_add(flops, std::memory_order_relaxed);
    to.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Since the last clear().
  static CountedCost of(CostPart part) noexcept {
    const Counts& from = counts_[static_cast<int>(part)];
    return {from.flops.load(), from.bytes.load()};
  }
  static void clear() noexcept {
    for (Counts& counts : counts_) counts.flops = counts.bytes = 0;
  }

 private:
  struct Counts {
    std::atomic<Dim> flops, bytes;
  };
  inline static Counts counts_[3];
};

// What the linear layers count as that this thread calls.
inline thread_local CostPart current_cost_part = CostPart::linear;

// Until its end they count as `part`.
class CountAs {
 public:
  explicit CountAs(CostPart part) noexcept : before_(current_cost_part) {
    current_cost_part = part;
  }
  ~CountAs() { current_cost_part = before_; }
  CountAs(const CountAs&) = delete;
  CountAs& operator=(const CountAs&) = delete;

 private:
  CostPart before_;
};
// The part that was current where this was made; travels with a call to other threads.
struct CallerCostPart {
  CostPart part = current_cost_part;
};
#else
inline constexpr bool counts_cost = false;

struct CostCounter {
  static void add(CostPart, Dim, Dim) noexcept {}
};
class CountAs {
 public:
  explicit CountAs(CostPart) noexcept {}
};
struct CallerCostPart {
  static constexpr CostPart part = CostPart::linear;
};
#endif

}  // namespace tenon::inline TENON_ABI
