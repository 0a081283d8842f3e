#pragma once
// The one attention loop. It walks the keys of a sequence in tiles, asks the mask how each is seen,
// and folds it into the softmax states of a block of queries. Layouts (contiguous, ring, paged) and
// element formats end where a tile's rows are loaded; masks and score hooks are values.
#include <algorithm>
#include <type_traits>

#include "../cache/row_cache.hpp"
#include "../core/batch.hpp"
#include "../kernels/cpu.hpp"
#include "../kernels/row_codec.hpp"
#include "mask.hpp"
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

// Rows of one head in one tile as floats: in place when the cache has them so, else in scratch.
struct TileRows {
  const float* row0;  // where row 0 of the tile would be
  Dim stride;         // floats
};
template <RowReader C>
TileRows load_tile(const RowOps& ops, const C& cache, SeqId seq, int slot, int plane, int tile,
                   Rows rows, Dim first, Dim dim, float* scratch) {
  const auto tag = cache.tags()[static_cast<std::size_t>(plane)];
  const RowCodec& codec = row_codec_of<typename C::Formats>(tag);
  const std::size_t stride = cache.row_stride(slot, plane);
  if (codec.floats && cache.contiguous_from(rows.low) >= rows.high - rows.low) {
    const auto step = static_cast<Dim>(stride / sizeof(float));
    const auto* row = reinterpret_cast<const float*>(cache.row(seq, slot, plane, rows.low));
    return {row + first - (rows.low - tile) * step, step};
  }
  for (int r = rows.low; r < rows.high;) {
    const int run = (std::min)(cache.contiguous_from(r), rows.high - r);
    const std::byte* row = cache.row(seq, slot, plane, r);
    for (int i = 0; i < run; ++i, row += stride) {
      codec.load(ops, row, first, dim, scratch + (r + i - tile) * dim);
    }
    r += run;
  }
  return {scratch, dim};
}

// What one call of AttentionBlock::run computes: query heads [head, head + heads), which read one
// key/value head, of `count` tokens of one sequence.
struct QueryBlock {
  SeqId seq{};
  int cached = 0;  // rows of the sequence, those of the step included
  int first = 0;   // token of the step
  int row = 0;     // its row in the sequence
  int count = 0;
  Dim kv_head = 0;
  Dim head = 0, heads = 0;
  Dim vectors() const { return count * heads; }
};

// Query vectors that share the loading of each tile; no result depends on their number.
inline constexpr Dim block_vectors = 64;
inline constexpr int block_tokens = 16;

// How a step is cut into blocks: whole groups of heads while there are blocks enough for all
// workers.
struct Blocking {
  Dim heads = 1;   // query heads of a block, within one group
  int tokens = 1;  // tokens of a block

  static Blocking of(const AttentionShape& shape, const Step& step, int workers) {
    const Dim group = shape.group();
    Blocking blocking{(std::min)(group, block_vectors), 1};
    blocking.tokens = static_cast<int>(
        (std::min)(Dim{block_tokens}, (std::max)(Dim{1}, block_vectors / blocking.heads)));
    Dim blocks = 0;
    for (const SeqStep& seq : step.seqs) {
      blocks += ceil_div(Dim{seq.count}, Dim{blocking.tokens}) * shape.kv_heads;
    }
    const Dim parts = (std::min)(group, ceil_div(Dim{workers}, (std::max)(Dim{1}, blocks)));
    blocking.heads = (std::min)(blocking.heads, ceil_div(group, parts));
    return blocking;
  }
};

template <RowCache C, Mask M, class S>
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
    const Dim values = block.heads * shape_.key_dim;
    for (int t = 0; t < block.count; ++t) {
      const float* from = queries.row(block.first + t) + block.head * shape_.key_dim;
      float* to = scratch_.queries + t * values;
      for (Dim i = 0; i < values; ++i) to[i] = from[i] * scale_;
    }
    fold(block);
    for (Dim i = 0; i < block.vectors(); ++i) {
      const Dim head = block.head + i % block.heads;
      float* to = outputs.row(block.first + i / block.heads) + head * shape_.value_dim;
      const float denominator = denominator_of(i, static_cast<int>(head));
      cpu_.attention().divide(scratch_.total.output(i), denominator == 0 ? 1.0f : denominator,
                              shape_.value_dim, to);
    }
  }

 private:
  // Folds every tile that a query sees into the total state.
  void fold(const QueryBlock& block) const {
    const Dim vectors = block.vectors();
    scratch_.total.clear(vectors);
    scratch_.segment.clear(vectors);
    const Rows rows{block.row, block.row + block.count};
    const Rows reach = mask_.reach(rows, block.cached);
    const int first_rows = (std::min)(tenon::first_rows(mask_), reach.low);
    const int reach_tile = reach.low / key_tile * key_tile;
    int segment = 0;
    for (int tile = first_rows > 0 ? 0 : reach_tile; tile < reach.high; tile += key_tile) {
      if (tile >= first_rows && tile < reach_tile) tile = reach_tile;  // nothing seen in between
      if (tile / segment_rows != std::exchange(segment, tile / segment_rows)) {
        close_segment(vectors);
      }
      const int low = tile < first_rows ? tile : (std::max)(tile, reach.low);
      const int high = tile < reach_tile ? first_rows : reach.high;
      const Rows keys{low, (std::min)(tile + key_tile, high)};
      const Coverage coverage = mask_.classify(rows, keys);
      if (coverage != Coverage::skip) fold_tile(block, tile, keys, coverage);
    }
    close_segment(vectors);
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

  void fold_tile(const QueryBlock& block, int tile, Rows rows, Coverage coverage) const {
    const AttentionOps& ops = cpu_.attention();
    const int low = rows.low - tile, high = rows.high - tile;
    const auto load = [&](int plane, Dim dim, float* scratch) {
      return load_tile(cpu_.rows(), cache_, block.seq, slot_, plane, tile, rows,
                       block.kv_head * dim, dim, scratch);
    };
    const TileRows keys = load(0, shape_.key_dim, scratch_.key_rows);
    ops.transpose_keys(keys.row0, keys.stride, low, high, shape_.key_dim, scratch_.keys);
    ops.score(scratch_.queries, static_cast<int>(block.vectors()), scratch_.keys, low, high,
              shape_.key_dim, scratch_.scores);
    const TileRows values = shape_.value_plane == 0
                                ? keys
                                : load(shape_.value_plane, shape_.value_dim, scratch_.value_rows);
    const std::uint64_t present = bit_range(low, high);
    if (coverage == Coverage::full) {
      fold_queries(block, tile, 0, static_cast<int>(block.vectors()), present, values);
      return;
    }
    for (int t = 0; t < block.count; ++t) {
      const std::uint64_t keep = keep_bits(mask_, block.row + t, tile) & present;
      const auto heads = static_cast<int>(block.heads);
      if (keep != 0) fold_queries(block, tile, t * heads, heads, keep, values);
    }
  }

  // Query vectors [at, at + n), which all keep the same keys.
  void fold_queries(const QueryBlock& block, int tile, int at, int n, std::uint64_t keep,
                    TileRows values) const {
    const AttentionOps& ops = cpu_.attention();
    const SoftmaxStates& state = scratch_.segment;
    for (int i = at; i < at + n; ++i) {
      float* scores = scratch_.scores + i * key_tile;
      if constexpr (ChangesLogits<S>) {
        const auto heads = static_cast<int>(block.heads);
        const int head = static_cast<int>(block.head) + i % heads;
        change_logits(score_, cpu_.rows(), scores, keep, head, block.row + i / heads, tile);
      }
      scratch_.factors[i] = ops.soften(scores, keep, state.maxima + i, state.denominators + i);
    }
    ops.accumulate(scratch_.scores + at * key_tile, scratch_.factors + at, n, keep, values.row0,
                   values.stride, shape_.value_dim, state.output(at));
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
  const Dim floats =
      round_up(detail::AttentionScratch::floats(shape, detail::block_vectors), Dim{16});
  float* memory = cpu.workspace().template take<float>(floats * cpu.threads());
  if (cpu.measuring()) return;
  if constexpr (ScalesQueries<S>) scale = score.scale(scale);
  const float factor = scale;
  cpu.parallel(shape.heads * step.tokens * 4096, [&](Worker worker) {
    const auto scratch =
        detail::AttentionScratch::at(memory + floats * worker.index, shape, detail::block_vectors);
    const auto blocking = detail::Blocking::of(shape, step, worker.count);
    int item = 0;
    for (const SeqStep& seq : step.seqs) {
      const auto seen = mask_in(mask, seq);
      const detail::AttentionBlock<C, std::remove_const_t<decltype(seen)>, S> block(
          cpu, cache, slot, shape, factor, seen, score, scratch);
      for (int at = 0; at < seq.count; at += blocking.tokens) {
        const int count = (std::min)(blocking.tokens, seq.count - at);
        for (Dim head = 0; head < shape.heads;) {
          const Dim kv_head = head / shape.group();
          const Dim heads = (std::min)(blocking.heads, (kv_head + 1) * shape.group() - head);
          if (item++ % worker.count == worker.index) {
            block.run({seq.seq, seq.base + seq.count, seq.first + at, seq.base + at, count, kv_head,
                       head, heads},
                      queries, outputs);
          }
          head += heads;
        }
      }
    }
  });
}

}  // namespace tenon::inline TENON_ABI
