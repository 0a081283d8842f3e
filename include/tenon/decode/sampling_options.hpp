#pragma once
// The run-time numbers of the built-in sampling steps, and what each of them may be.
#include <cstdint>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// The defaults are greedy decoding: the most likely token, ties to the lowest id.
struct SamplingOptions {
  double temperature = 0;  // logits are divided by it; 0 and below: greedy
  int top_k = 0;           // keep the k most likely tokens; 0, or the vocabulary and more: all
  double top_p = 1;        // keep the likeliest tokens whose sum first reaches p; 1: all, 0: one
  double min_p = 0;        // keep tokens at least p times as likely as the best; 0: all
  std::uint64_t seed = 0;  // same seed, same position: same draw

  static constexpr double highest_temperature = 100;

  // RequestError naming the first option that is out of its range, and the range.
  void check() const;

 private:
  static void check_share(const char* name, double value, const char* advice);
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "sampling_options.inl"
#endif
