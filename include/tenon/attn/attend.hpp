#pragma once
// The one attention loop. It walks the keys of a sequence in tiles, asks the mask how each is seen,
// and folds it into the softmax states of a block of queries. Layouts (contiguous, ring, paged) and
// element formats end where a tile's rows are loaded; masks and score hooks are values.
#include <algorithm>
#include <atomic>
#include <bit>
#include <type_traits>

#include "../cache/row_cache.hpp"
#include "../core/cost_counter.hpp"
#include "../kernels/cpu.hpp"
#include "mask.hpp"
#include "plane_reader.hpp"
#include "query_block.hpp"
#include "score.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// A long context is folded in segments of this many keys, merged in ascending order, so that a
// later split over threads changes no bit.
inline constexpr int segment_rows = 512;

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
    block.each_vector([&](Dim i, int token, Dim head) {
      const float* from = queries.row(block.first + token) + head * shape_.key_dim;
      float* to = scratch_.queries + i * shape_.key_dim;
      for (Dim d = 0; d < shape_.key_dim; ++d) to[d] = from[d] * scale_;
    });
    fold(block);
    block.each_vector([&](Dim i, int token, Dim head) {
      float* to = outputs.row(block.first + token) + head * shape_.value_dim;
      if (scratch_.total.denominators[i] == 0) {  // no key weighs anything
        std::fill_n(to, shape_.value_dim, 0.0f);
        return;
      }
      cpu_.attention().divide(scratch_.total.output(i), denominator_of(i, static_cast<int>(head)),
                              shape_.value_dim, to);
    });
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
    scratch_.total.begin(vectors);
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
  }

  // `next` is the tile after this one: its rows are fetched while this one's are computed on.
  void fold_tile(const QueryBlock& block, Walk& walk, Tile& tile, const Tile& next) const {
    if (tile.start / segment_rows != std::exchange(walk.segment, tile.start / segment_rows)) {
      close_segment(block.vectors());
      scratch_.segment.clear(block.vectors());
    }
    if constexpr (!RowCache<C>) locate(walk, tile);
    const bool shared = shape_.value_plane == 0;
    if constexpr (counts_cost && RowCache<C>) {
      const Dim rows = tile.keys.high - tile.keys.low;
      CostCounter::add(CostPart::attention, 0,
                       rows * (part_of(walk.keys.row_bytes(), block) +
                               (shared ? 0 : part_of(walk.values.row_bytes(), block))));
    }
    Plane keys = plane_of(walk.keys, 0, next, block);
    const Dim together = heads_together(block, tile);
    for (Dim k = 0; k < block.kv_heads; k += together) {
      const TileRows rows = rows_of(keys, tile, block.kv_head + k);
      score(block, tile, {k, k + together}, keys, rows);
      if (shared) fold_heads(block, tile, {k, k + 1}, keys, [&](Dim) { return rows; });
    }
    if (shared) return;
    Plane values = plane_of(walk.values, 1, next, block);
    fold_heads(block, tile, {0, block.kv_heads}, values,
               [&](Dim k) { return rows_of(values, tile, block.kv_head + k); });
  }

  // Of the bytes of a row, those of the block's key/value heads.
  Dim part_of(Dim bytes, const QueryBlock& block) const {
    const Dim end = block.kv_head + block.kv_heads;
    return bytes * end / shape_.kv_heads - bytes * block.kv_head / shape_.kv_heads;
  }

  // Key/value heads that the leaves take at once: those narrower than a vector, where they lie side
  // by side.
  Dim heads_together(const QueryBlock& block, const Tile& tile) const {
    const bool narrow = AttentionScratch::keys_together(shape_) > 1;
    return narrow && tile.located[0] && tile.located[1] ? block.kv_heads : 1;
  }

  // Keys or values while a tile is folded, and what is fetched of the next one meanwhile.
  struct Plane {
    const Reader& reader;
    int index;
    Dim dim;  // of a head
    TileAhead ahead;
    int lines;  // of each group, for the rows of one head
    // The next leaf, which works for so many heads, fetches so many sixteenths of their lines.
    TileAhead& fetch(int sixteenths, Dim heads) {
      ahead.lines = lines * static_cast<int>(heads) * sixteenths / 16;
      return ahead;
    }
  };
  Plane plane_of(const Reader& reader, int index, const Tile& next, const QueryBlock& block) const {
    const Dim each = reader.row_bytes() / shape_.kv_heads;
    Plane plane{reader, index, index == 0 ? shape_.key_dim : shape_.value_dim, {}, lines_of(each)};
    if (!next.located[index] || each == 0) return plane;
    TileAhead& ahead = plane.ahead;
    for (int g = 0; g < key_tile / 16; ++g) {
      ahead.group[g] = next.rows[index].group[g] + each * block.kv_head;
    }
    ahead.stride = reader.row_bytes();
    ahead.run = ahead.left = each * block.kv_heads;
    ahead.remaining = lines_of(ahead.run);
    return plane;
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

  // The rows of a tile from `head` on, or those of this head alone, decoded.
  TileRows rows_of(const Plane& plane, const Tile& tile, Dim head) const {
    const bool located = tile.located[plane.index];
    const Dim first = head * plane.dim;
    TileRows rows =
        located ? tile.rows[plane.index] : plane.reader.load(tile.start, tile.keys, first);
    rows.first = located ? first : 0;
    return rows;
  }
  // The leaves that read them.
  const TileOps& leaves_of(const Plane& plane, const Tile& tile) const {
    return cpu_.attention()
        .tiles[static_cast<std::size_t>(plane.reader.elements(tile.located[plane.index]))];
  }

  // Scores of the queries of the block's heads `some`, whose rows lie side by side.
  void score(const QueryBlock& block, const Tile& tile, Range some, Plane& keys,
             const TileRows& rows) const {
    const int low = tile.keys.low - tile.start, high = tile.keys.high - tile.start;
    const Dim heads = some.end - some.begin, dim = shape_.key_dim;
    const TileOps& leaves = leaves_of(keys, tile);
    leaves.transpose_keys(rows, low, high, keys.fetch(shares().transpose, heads), heads * dim,
                          scratch_.keys);
    for (Dim k = some.begin; k < some.end; ++k) {
      const Dim at = k * block.each();
      leaves.score(scratch_.queries + at * dim, static_cast<int>(block.each()),
                   scratch_.keys + (k - some.begin) * dim * key_tile, low, high,
                   keys.fetch(shares().score, 1), dim, scratch_.scores + at * key_tile);
    }
  }

  // Folds the scores of the block's heads `some` with their values, whose rows are rows(head).
  template <class RowsOfHead>
  void fold_heads(const QueryBlock& block, const Tile& tile, Range some, Plane& values,
                  const RowsOfHead& rows) const {
    const TileOps& leaves = leaves_of(values, tile);
    const Dim each = block.each();
    const std::uint64_t present =
        bit_range(tile.keys.low - tile.start, tile.keys.high - tile.start);
    // Vectors [at, at + heads x count), which keep the same keys.
    const auto accumulate = [&](Dim at, Dim heads, Dim count, std::uint64_t keep,
                                const TileRows& from) {
      leaves.accumulate(scratch_.scores + at * key_tile, scratch_.factors + at,
                        static_cast<int>(heads), static_cast<int>(count), keep, from,
                        values.fetch(shares().accumulate, heads), shape_.value_dim,
                        scratch_.segment.output(at));
    };
    if (tile.coverage == Coverage::full || block.count == 1) {
      const std::uint64_t keep = tile.coverage == Coverage::full
                                     ? present
                                     : keep_bits(mask_, block.row, tile.start) & present;
      if (keep == 0) return;
      const Dim heads = some.end - some.begin;
      soften(block, tile.start, some.begin * each, heads * each, keep,
             values.fetch(shares().soften, heads));
      const Dim together = heads_together(block, tile);
      for (Dim k = some.begin; k < some.end; k += together) {
        accumulate(k * each, together, each, keep, rows(k));
      }
      return;
    }
    for (Dim k = some.begin; k < some.end; ++k) {
      const TileRows from = rows(k);
      for (int t = 0; t < block.count; ++t) {
        const std::uint64_t keep = keep_bits(mask_, block.row + t, tile.start) & present;
        if (keep == 0) continue;
        const Dim at = k * each + t * block.heads;
        soften(block, tile.start, at, block.heads, keep, values.fetch(shares().soften, 1));
        accumulate(at, 1, block.heads, keep, from);
      }
    }
  }

  // Scores of the query vectors [at, at + n), which keep the same keys, become weights.
  void soften(const QueryBlock& block, int tile, Dim at, Dim n, std::uint64_t keep,
              TileAhead& ahead) const {
    const SoftmaxStates& state = scratch_.segment;
    if constexpr (counts_cost) {
      const Dim pairs = n * Dim{std::popcount(keep)};
      CostCounter::add(CostPart::attention, 2 * pairs * (shape_.key_dim + shape_.value_dim), 0);
    }
    if constexpr (ChangesLogits<S>) {
      for (Dim i = at; i < at + n; ++i) {
        change_logits(score_, cpu_.rows(), scratch_.scores + i * key_tile, keep,
                      static_cast<int>(block.head_of(i)), block.row + block.token_of(i), tile);
      }
    } else {
      static_cast<void>(tile);
      static_cast<void>(block);
    }
    cpu_.attention().soften(scratch_.scores + at * key_tile, static_cast<int>(n), keep, ahead,
                            state.maxima + at, state.denominators + at, scratch_.factors + at);
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
