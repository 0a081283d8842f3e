#pragma once
// What one forward() processes. Prefill, decode, chunks, verification of drafts and trees, scoring
// and batches of many sequences are all this one struct.
#include <cstdint>
#include <span>

#include "types.hpp"

namespace tenon::inline TENON_ABI {

struct Batch {
  std::span<const SeqId> seqs;     // [S] distinct
  std::span<const int> counts;     // [S] new tokens of each sequence
  std::span<const Token> tokens;   // [T] sequence by sequence
  std::span<const int> positions;  // [T] rotary positions; empty: length of the sequence + offset
  std::span<const int> parents;    // [T] token tree: the parent's index within its sequence's
                                   //     slice, -1 = the cached prefix; empty: a chain
  std::span<const int> want;       // [W] indices below T whose logits are wanted, in output order
};

// One sequence's part of a step, as mixers see it.
struct SeqStep {
  SeqId seq{};
  int first = 0;  // index of its first token in the step
  int count = 0;  // its new tokens
  int base = 0;   // rows cached before the step; token i becomes row base + i
  // Of a token tree, else null: the depth of each token, and as bits which tokens are its ancestors
  // or itself.
  const int* depths = nullptr;               // [count]
  const std::uint64_t* ancestors = nullptr;  // [count, (count + 63) / 64]
};

// A validated batch.
struct Step {
  std::span<const SeqStep> seqs;
  std::span<const int> positions;  // [tokens]
  int tokens = 0;
};

}  // namespace tenon::inline TENON_ABI
