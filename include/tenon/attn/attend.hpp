#pragma once
// The one attention loop. It walks the keys of a sequence in tiles, asks the mask how each is seen,
// and folds it into the softmax states of a block of queries. Layouts (contiguous, ring, paged) and
// element formats end where a tile's rows are loaded; masks and score hooks are values.
#include <algorithm>
#include <atomic>
#include <bit>
#include <type_traits>

#include "../cache/row_cache.hpp"
#include "../core/batch.hpp"
#include "../core/cost_counter.hpp"
#include "../kernels/cpu.hpp"
#include "mask.hpp"
#include "plane_reader.hpp"
#include "score.hpp"
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

// A long context is folded in segments of this many keys, merged in ascending order, so that a
// later split over threads changes no bit.
inline constexpr int segment_rows = 512;

// Scratch of one worker, for blocks of at most `queries` query vectors.
struct AttentionScratch {
  float *keys, *key_rows, *value_rows, *queries, *scores, *factors;
  SoftmaxStates segment, total;

  static constexpr Dim floats(const AttentionShape& s, Dim queries) {
    return key_tile * (2 * s.key_dim + s.value_dim) + queries * (s.key_dim + key_tile + 1) +
           2 * SoftmaxStates::floats(queries, s.value_dim);
  }
  static AttentionScratch at(float* memory, const AttentionShape& s, Dim queries) {
    AttentionScratch scratch{};
    const auto take = [&memory](Dim n) { return std::exchange(memory, memory + n); };
    scratch.keys = take(key_tile * s.key_dim);
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

template <RowReader C, Mask M, class S>
class AttentionBlock {
 public:
  AttentionBlock(const Cpu& cpu, const C& cache, int slot, const AttentionShape& shape, float scale,
                 const M& mask, const S& score, const AttentionScratch& scratch)
      : cpu_(cpu),
        cache_(cache),
        slot_(slot),
        shape_(shape),
        scale_(scale),
        mask_(mask),
        score_(score),
        scratch_(scratch) {}

  void run(const QueryBlock& block, MatView<const float> queries, MatView<float> outputs) const {
    for (Dim i = 0; i < block.vectors(); ++i) {
      const float* from =
          queries.row(block.first + block.token_of(i)) + block.head_of(i) * shape_.key_dim;
      float* to = scratch_.queries + i * shape_.key_dim;
      for (Dim d = 0; d < shape_.key_dim; ++d) to[d] = from[d] * scale_;
    }
    fold(block);
    for (Dim i = 0; i < block.vectors(); ++i) {
      const Dim head = block.head_of(i);
      float* to = outputs.row(block.first + block.token_of(i)) + head * shape_.value_dim;
      const float denominator = denominator_of(i, static_cast<int>(head));
      cpu_.attention().divide(scratch_.total.output(i), denominator == 0 ? 1.0f : denominator,
                              shape_.value_dim, to);
    }
  }

 private:
  using Reader = PlaneReader<C>;
  struct Tile {
    int start = 0;
    Rows keys;
    Coverage coverage = Coverage::skip;
    TileRows rows[2] = {};  // of keys and values, where located
    bool located[2] = {};
  };
  // The planes of a block's sequence, and where reading them has come to.
  struct Walk {
    Reader keys, values;
    int segment = 0;
  };

  // Folds every tile that a query sees into the total state.
  void fold(const QueryBlock& block) const {
    const Dim vectors = block.vectors();
    scratch_.total.clear(vectors);
    scratch_.segment.clear(vectors);
    const bool shared = shape_.value_plane == 0;
    Walk walk{Reader(cpu_.rows(), cache_, block.seq, slot_, 0, shape_.key_dim,
                     shared ? shape_.value_dim : shape_.key_dim, scratch_.key_rows),
              Reader(cpu_.rows(), cache_, block.seq, slot_, shape_.value_plane, shape_.value_dim,
                     shape_.value_dim, scratch_.value_rows)};
    const Rows rows{block.row, block.row + block.count};
    const Rows reach = mask_.reach(rows, block.cached);
    const int first_rows = (std::min)(tenon::first_rows(mask_), reach.low);
    const int reach_tile = reach.low / key_tile * key_tile;
    Tile tile;
    for (int start = first_rows > 0 ? 0 : reach_tile; start < reach.high; start += key_tile) {
      if (start >= first_rows && start < reach_tile) start = reach_tile;  // nothing seen between
      const int low = start < first_rows ? start : (std::max)(start, reach.low);
      const int high = start < reach_tile ? first_rows : reach.high;
      Tile next{start, {low, (std::min)(start + key_tile, high)}};
      next.coverage = mask_.classify(rows, next.keys);
      if (next.coverage == Coverage::skip) continue;
      if constexpr (RowCache<C>) locate(walk, next);  // others make their rows when asked
      if (tile.coverage != Coverage::skip) fold_tile(block, walk, tile, next);
      tile = next;
    }
    if (tile.coverage != Coverage::skip) fold_tile(block, walk, tile, {});
    close_segment(vectors);
  }
  void locate(const Walk& walk, Tile& tile) const {
    tile.located[0] = walk.keys.locate(tile.start, tile.keys, tile.rows[0]);
    if (shape_.value_plane == 0) return;
    tile.located[1] = walk.values.locate(tile.start, tile.keys, tile.rows[1]);
  }
  // The finished denominator of a query; a sink adds its share and has no value to add.
  float denominator_of(Dim i, int head) const {
    float denominator = scratch_.total.denominators[i];
    if constexpr (HasSink<S>) {
      const float logit = score_.sink(head) - scratch_.total.maxima[i];
      denominator += cpu_.attention().exponential_of(logit);
    } else {
      static_cast<void>(head);
    }
    return denominator;
  }
  void close_segment(Dim vectors) const {
    for (Dim i = 0; i < vectors; ++i) {
      scratch_.total.merge(cpu_.attention(), i, scratch_.segment);
    }
    scratch_.segment.clear(vectors);
  }

  // `next` is the tile after this one: its rows are fetched while this one's are computed on.
  void fold_tile(const QueryBlock& block, Walk& walk, Tile& tile, const Tile& next) const {
    if (tile.start / segment_rows != std::exchange(walk.segment, tile.start / segment_rows)) {
      close_segment(block.vectors());
    }
    if constexpr (!RowCache<C>) locate(walk, tile);
    const bool shared = shape_.value_plane == 0;
    if constexpr (counts_cost && RowCache<C>) {
      const Dim rows = tile.keys.high - tile.keys.low;
      CostCounter::add(CostPart::attention, 0,
                       rows * (part_of(walk.keys.row_bytes(), block) +
                               (shared ? 0 : part_of(walk.values.row_bytes(), block))));
    }
    TileAhead later_keys = ahead_of(walk.keys, next, 0, block);
    TileAhead later_values = shared ? TileAhead{} : ahead_of(walk.values, next, 1, block);
    for (Dim k = 0; k < block.kv_heads; ++k) {
      const Heads keys =
          heads_of(walk.keys, tile, 0, block.kv_head + k, shape_.key_dim, later_keys);
      score(block, keys, tile, k);
      const Heads values = shared ? keys
                                  : heads_of(walk.values, tile, 1, block.kv_head + k,
                                             shape_.value_dim, later_values);
      fold_head(block, tile, k, values);
    }
  }

  // Of the bytes of a row, those of the block's key/value heads.
  Dim part_of(Dim bytes, const QueryBlock& block) const {
    const Dim end = block.kv_head + block.kv_heads;
    return bytes * end / shape_.kv_heads - bytes * block.kv_head / shape_.kv_heads;
  }

  // One head's rows of a tile, the leaves for them, and what they fetch of the next tile.
  struct Heads {
    TileRows rows;
    const TileOps& ops;
    TileAhead& ahead;
    int lines;  // of each group, for the rows of one head
  };
  Heads heads_of(const Reader& reader, const Tile& tile, int plane, Dim head, Dim dim,
                 TileAhead& ahead) const {
    const bool located = tile.located[plane];
    TileRows rows = located ? tile.rows[plane] : reader.load(tile.start, tile.keys, head * dim);
    rows.first = located ? head * dim : 0;
    return {rows, cpu_.attention().tiles[static_cast<std::size_t>(reader.elements(located))], ahead,
            lines_of(reader.row_bytes() / shape_.kv_heads)};
  }
  // What all heads of the block will read of the next tile.
  TileAhead ahead_of(const Reader& reader, const Tile& next, int plane,
                     const QueryBlock& block) const {
    TileAhead ahead{};
    const Dim each = reader.row_bytes() / shape_.kv_heads;
    if (!next.located[plane] || each == 0) return ahead;
    for (int g = 0; g < key_tile / 16; ++g) {
      ahead.group[g] = next.rows[plane].group[g] + each * block.kv_head;
    }
    ahead.stride = reader.row_bytes();
    ahead.run = ahead.left = each * block.kv_heads;
    ahead.remaining = lines_of(ahead.run);
    return ahead;
  }
  // Lines of a group, of whose rows so many bytes matter.
  static int lines_of(Dim bytes) { return static_cast<int>(ceil_div(16 * bytes, TileAhead::line)); }
  // How many sixteenths of a plane's lines each leaf fetches: about its part of the time.
  struct Shares {
    int transpose, score, soften, accumulate;
  };
  Shares shares() const {
    return shape_.value_plane == 0 ? Shares{4, 5, 2, 5} : Shares{6, 10, 5, 11};
  }

  void score(const QueryBlock& block, const Heads& keys, const Tile& tile, Dim k) const {
    const int low = tile.keys.low - tile.start, high = tile.keys.high - tile.start;
    const Dim at = k * block.each();
    keys.ahead.lines = keys.lines * shares().transpose / 16;
    keys.ops.transpose_keys(keys.rows, low, high, keys.ahead, shape_.key_dim, scratch_.keys);
    keys.ahead.lines = keys.lines * shares().score / 16;
    keys.ops.score(scratch_.queries + at * shape_.key_dim, static_cast<int>(block.each()),
                   scratch_.keys, low, high, keys.ahead, shape_.key_dim,
                   scratch_.scores + at * key_tile);
  }

  void fold_head(const QueryBlock& block, const Tile& tile, Dim k, const Heads& values) const {
    const auto each = static_cast<int>(block.each());
    const int at = static_cast<int>(k) * each;
    const std::uint64_t present =
        bit_range(tile.keys.low - tile.start, tile.keys.high - tile.start);
    if (tile.coverage == Coverage::full) {
      fold_queries(block, tile.start, at, each, present, values);
      return;
    }
    for (int t = 0; t < block.count; ++t) {
      const std::uint64_t keep = keep_bits(mask_, block.row + t, tile.start) & present;
      const auto heads = static_cast<int>(block.heads);
      if (keep != 0) fold_queries(block, tile.start, at + t * heads, heads, keep, values);
    }
  }

  // Query vectors [at, at + n), which all keep the same keys.
  void fold_queries(const QueryBlock& block, int tile, int at, int n, std::uint64_t keep,
                    const Heads& values) const {
    const AttentionOps& ops = cpu_.attention();
    const SoftmaxStates& state = scratch_.segment;
    if constexpr (counts_cost) {
      const Dim pairs = n * Dim{std::popcount(keep)};
      CostCounter::add(CostPart::attention, 2 * pairs * (shape_.key_dim + shape_.value_dim), 0);
    }
    float* scores = scratch_.scores + at * key_tile;
    if constexpr (ChangesLogits<S>) {
      for (int i = at; i < at + n; ++i) {
        change_logits(score_, cpu_.rows(), scratch_.scores + i * key_tile, keep,
                      static_cast<int>(block.head_of(i)), block.row + block.token_of(i), tile);
      }
    } else {
      static_cast<void>(tile);
    }
    values.ahead.lines = values.lines * shares().soften / 16;
    ops.soften(scores, n, keep, values.ahead, state.maxima + at, state.denominators + at,
               scratch_.factors + at);
    values.ahead.lines = values.lines * shares().accumulate / 16;
    values.ops.accumulate(scores, scratch_.factors + at, n, keep, values.rows, values.ahead,
                          shape_.value_dim, state.output(at));
  }

  const Cpu& cpu_;
  const C& cache_;
  int slot_;
  const AttentionShape& shape_;
  float scale_;
  const M& mask_;
  const S& score_;
  AttentionScratch scratch_;
};

}  // namespace detail

// Softmax attention of every token of the step over its own sequence's rows.
//   queries [tokens, heads x key_dim], outputs [tokens, heads x value_dim]; logits are multiplied
//   by `scale`, or what the score hook makes of it, then given to the hook. A query that keeps no
//   key gets zeros.
template <RowCache C, Mask M, Score S>
void attend(Cpu& cpu, const C& cache, int slot, const Step& step, MatView<const float> queries,
            MatView<float> outputs, const AttentionShape& shape, float scale, const M& mask,
            const S& score) {
  const auto frame = cpu.workspace().frame();
  const Dim floats = round_up(detail::AttentionScratch::floats(shape, block_vectors), Dim{16});
  float* memory = cpu.workspace().template take<float>(floats * cpu.threads());
  if (cpu.measuring()) return;
  if constexpr (ScalesQueries<S>) scale = score.scale(scale);
  const float factor = scale;
  std::atomic<int> taken{0};  // blocks differ in keys, cores in speed: who is free takes the next
  cpu.parallel(shape.heads * step.tokens * 4096, [&](Worker worker) {
    const auto scratch =
        detail::AttentionScratch::at(memory + floats * worker.index, shape, block_vectors);
    const auto blocking = detail::Blocking::of(shape, step, worker.count);
    int item = 0, mine = taken.fetch_add(1, std::memory_order_relaxed);
    for (const SeqStep& seq : step.seqs) {
      const auto seen = mask_in(mask, seq);
      const detail::AttentionBlock<C, std::remove_const_t<decltype(seen)>, S> block(
          cpu, cache, slot, shape, factor, seen, score, scratch);
      for (int at = 0; at < seq.count; at += blocking.tokens) {
        const int count = (std::min)(blocking.tokens, seq.count - at);
        for (Dim head = 0; head < shape.heads;) {
          const Dim kv_head = head / shape.group();
          const Dim heads = (std::min)(blocking.heads, (kv_head + 1) * shape.group() - head);
          const Dim kv_heads = (std::min)(blocking.kv_heads, shape.kv_heads - kv_head);
          if (item++ == mine) {
            block.run({seq.seq, seq.base + seq.count, seq.first + at, seq.base + at, count, kv_head,
                       head, heads, kv_heads},
                      queries, outputs);
            mine = taken.fetch_add(1, std::memory_order_relaxed);
          }
          head += heads * kv_heads;
        }
      }
    }
  });
}

}  // namespace tenon::inline TENON_ABI
