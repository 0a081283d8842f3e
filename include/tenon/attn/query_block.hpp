#pragma once
// How the queries of a step are cut into blocks that share the loading of rows, and the memory of a
// worker that folds one.
#include <algorithm>
#include <utility>

#include "../core/attention_tiles.hpp"
#include "../core/batch.hpp"
#include "../core/memory.hpp"
#include "softmax_state.hpp"

namespace tenon::inline TENON_ABI {

// A query head h reads key/value head h / (heads / kv_heads). With a value plane of 0 the values
// are the first value_dim values of the one key head (MLA).
struct AttentionShape {
  Dim heads = 0, kv_heads = 0;
  Dim key_dim = 0, value_dim = 0;
  int value_plane = 1;
  constexpr Dim group() const { return heads / kv_heads; }
};

namespace detail {

// Scratch of one worker, for blocks of at most `queries` query vectors.
struct AttentionScratch {
  float *keys, *key_rows, *value_rows, *queries, *scores, *factors;
  SoftmaxStates segment, total;

  static constexpr Dim floats(const AttentionShape& s, Dim queries) {
    return key_tile * ((1 + keys_together(s)) * s.key_dim + s.value_dim) +
           queries * (s.key_dim + key_tile + 1) + 2 * SoftmaxStates::floats(queries, s.value_dim);
  }
  // Heads whose keys are transposed at once: narrower than a vector, they lie side by side.
  static constexpr Dim keys_together(const AttentionShape& s) {
    return s.key_dim < 16 && s.value_dim < 16 ? (std::min)(s.kv_heads, block_vectors) : 1;
  }
  static AttentionScratch at(float* memory, const AttentionShape& s, Dim queries) {
    AttentionScratch scratch{};
    const auto take = [&memory](Dim n) { return std::exchange(memory, memory + n); };
    scratch.keys = take(key_tile * keys_together(s) * s.key_dim);
    scratch.key_rows = take(key_tile * s.key_dim);
    scratch.value_rows = take(key_tile * s.value_dim);
    scratch.queries = take(queries * s.key_dim);
    scratch.scores = take(queries * key_tile);
    scratch.factors = take(queries);
    const Dim state = SoftmaxStates::floats(queries, s.value_dim);
    scratch.segment = SoftmaxStates::at(take(state), queries, s.value_dim);
    scratch.total = SoftmaxStates::at(take(state), queries, s.value_dim);
    return scratch;
  }
};

// What one call of AttentionBlock::run computes, for `count` tokens of one sequence: query heads
// [head, head + heads), which read key/value head kv_head. Of several kv_heads the query heads are
// whole groups, `heads` of each; vectors are ordered by key/value head, token, query head.
struct QueryBlock {
  SeqId seq{};
  int cached = 0;  // rows of the sequence, those of the step included
  int first = 0;   // token of the step
  int row = 0;     // its row in the sequence
  int count = 0;
  Dim kv_head = 0;
  Dim head = 0, heads = 0;
  Dim kv_heads = 1;
  Dim each() const { return count * heads; }  // vectors of one key/value head
  Dim vectors() const { return kv_heads * each(); }
  int token_of(Dim i) const { return static_cast<int>(i % each() / heads); }
  Dim head_of(Dim i) const { return head + i / each() * heads + i % heads; }
  // vector(number, its token, its query head) for all of them, in order.
  template <class Vector>
  void each_vector(Vector&& vector) const {
    Dim i = 0;
    for (Dim k = 0; k < kv_heads; ++k) {
      for (int t = 0; t < count; ++t) {
        for (Dim h = 0; h < heads; ++h) vector(i++, t, head + k * heads + h);
      }
    }
  }
};

// How a step is cut into blocks: as many key/value heads as a block has vectors for, so that rows
// are read as they lie, but blocks enough for all workers, for which groups are cut up too.
struct Blocking {
  Dim heads = 1;     // query heads of a block of one group
  int tokens = 1;    // tokens of a block
  Dim kv_heads = 1;  // more than one only of whole groups

  static Blocking of(const AttentionShape& shape, const Step& step, int workers) {
    const Dim group = shape.group();
    Blocking blocking{(std::min)(group, block_vectors), 1};
    blocking.tokens = static_cast<int>(
        (std::min)(Dim{block_tokens}, (std::max)(Dim{1}, block_vectors / blocking.heads)));
    int longest = 1;
    Dim blocks = 0;
    for (const SeqStep& seq : step.seqs) {
      longest = (std::max)(longest, seq.count);
      blocks += ceil_div(Dim{seq.count}, Dim{blocking.tokens}) * shape.kv_heads;
    }
    const Dim parts = (std::min)(group, ceil_div(Dim{workers}, (std::max)(Dim{1}, blocks)));
    blocking.heads = (std::min)(blocking.heads, ceil_div(group, parts));
    if (blocking.heads == group) {
      const Dim each = group * (std::min)(blocking.tokens, longest);
      blocking.kv_heads = (std::max)(Dim{1}, (std::min)({block_vectors / each, shape.kv_heads,
                                                         ceil_div(blocks, Dim{workers})}));
    }
    return blocking;
  }
};

}  // namespace detail

}  // namespace tenon::inline TENON_ABI
