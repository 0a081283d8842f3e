#pragma once
#include <cmath>

#include "../core/error.hpp"
#include "sampling_options.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void SamplingOptions::check() const {
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

TENON_INLINE void SamplingOptions::check_share(const char* name, double value, const char* advice) {
  if (value >= 0 && value <= 1) return;
  fail<RequestError>("sampling option ", name, " must be from 0 to 1, it is ", value, "; use ",
                     advice);
}

}  // namespace tenon::inline TENON_ABI
