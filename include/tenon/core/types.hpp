#pragma once
// The small vocabulary types that every folder shares.
#include <cstddef>
#include <cstdint>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

// A size. `dyn` in a Spec means "read it from the checkpoint"; any other value pins it.
using Dim = std::int64_t;
inline constexpr Dim dyn = -1;

// The pinned value, or the run-time one when the Spec says `dyn`.
template <Dim Pinned>
constexpr Dim pinned_or(Dim run_time) {
  return Pinned == dyn ? run_time : Pinned;
}

using Token = std::int32_t;

// A sequence of one session; its value is an index below Limits::seqs.
enum class SeqId : std::int32_t {};
constexpr std::size_t index(SeqId seq) {
  return static_cast<std::size_t>(seq);
}

// What a session makes room for when it is opened. Nothing grows afterwards.
struct Limits {
  int seqs = 1;          // sequences open at once
  int context = 512;     // rows each of them may hold
  int step_tokens = 64;  // tokens one forward() may carry, over all sequences
  int rollback = 0;      // rows that truncate() must be able to take back from bounded caches
  int pool_rows = 0;     // rows that all sequences together may hold in a paged cache; 0: context
                         // for each of them
};

}  // namespace tenon::inline TENON_ABI
