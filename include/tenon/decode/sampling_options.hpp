#pragma once
// The run-time numbers of the built-in sampling steps, and what each of them may be.
#include <cmath>
#include <cstdint>

#include "../core/error.hpp"

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
  void check() const {
    if (!std::isfinite(temperature) || temperature > highest_temperature) {
      fail<RequestError>("sampling option temperature must be a finite number up to ",
                         highest_temperature, ", it is ", temperature,
                         "; use 0 for greedy decoding and 0.5 to 1.5 for variety");
    }
    if (top_k < 0) {
      fail<RequestError>("sampling option top_k must be 0 (off) or a positive count, it is ", top_k,
                         "; use 0 to keep every token");
    }
    check_share("top_p", top_p, "1 to keep every token");
    check_share("min_p", min_p, "0 to keep every token");
  }

 private:
  static void check_share(const char* name, double value, const char* advice) {
    if (value >= 0 && value <= 1) return;
    fail<RequestError>("sampling option ", name, " must be from 0 to 1, it is ", value, "; use ",
                       advice);
  }
};

}  // namespace tenon::inline TENON_ABI
