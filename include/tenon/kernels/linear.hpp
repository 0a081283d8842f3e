#pragma once
// y = x W^T on packed weights. Every output element is one fold over k ascending, whatever the
// number of tokens or threads and whatever the instruction set, so all of them give the same bits.
#include <cassert>
#include <span>

#include "../core/cost_counter.hpp"
#include "../core/executor.hpp"
#include "../core/shared_parts.hpp"
#include "../tensor/view.hpp"
#include "activations.hpp"
#include "packed.hpp"

namespace tenon::inline TENON_ABI {

// One tile of 16 output rows as a leaf sees it: token t's results go to y + t * y_stride, of which
// only the first `rows` lie inside the matrix.
struct LinearTile {
  TileWeights weights;
  float* y = nullptr;
  Dim y_stride = 0;
  int rows = 0;
  bool accumulate = false;
};
// The activations [tokens, in] all tiles of a call share; `quantized` in groups of sixteen tokens
// from the first on.
struct LinearRows {
  const float* x = nullptr;
  QuantizedRows quantized;
  Dim tokens = 0, in = 0;
  [[no_unique_address]] CallerCostPart counted{};
};
// The two arithmetics of a format; `int8` is null where the format has none.
struct LinearLeaf {
  using Call = void (*)(const LinearTile* tiles, int count, const LinearRows& rows);
  Call f32 = nullptr;
  Call int8 = nullptr;
};
inline constexpr int most_tiles_a_call = 24;
// Up to here the weights, which pass through once, are what takes the time.
inline constexpr Dim few_tokens = 2 * QuantizedGroup::most;

// The leaf of one format for an instruction set that this machine supports.
template <class F>
const LinearLeaf& linear_leaf(Isa isa);

}  // namespace tenon::inline TENON_ABI

#include "compiled_leaves.hpp"
#if !defined(TENON_COMPILED)
#include "every_format.hpp"
#endif

namespace tenon::inline TENON_ABI {

// One product of a call: y [tokens, >= out] = (or +=) x W^T; a row of y starts every y.extent(1).
template <class Formats>
struct LinearOutput {
  const PackedMatrix<Formats>* weight = nullptr;
  MatView<float> y;
  bool accumulate = false;      // y += the finished dot product, one rounding
  const float* bias = nullptr;  // [out] added to y afterwards
};

// Rows [first, first + count) of a call's x with at most two weights of their own, without biases;
// row 0 of an output's y belongs to row `first`.
template <class Formats>
struct LinearGroup {
  Dim first = 0, count = 0;
  LinearOutput<Formats> outputs[2];
  int size = 1;  // outputs in use
  std::span<const LinearOutput<Formats>> used() const {
    return {outputs, static_cast<std::size_t>(size)};
  }
};

namespace detail {
template <class Formats>
const LinearLeaf& linear_leaf_of_tag(int tag, Isa isa) {
  return FormatList<Formats>::visit(tag, [&]<class F>(F) -> const LinearLeaf& {
    static_assert(explain_leaf<packed_form<F>>());
    return linear_leaf<packed_form<F>>(isa);
  });
}

// Few tokens stream their weights from memory, in runs of tiles side by side: a token alone eight,
// because one does not keep enough lines on their way, up to four tokens four and others two: as
// many as their integer leaves take together. A leaf that fetches past the end of a tile then finds
// the tile that its run goes on with.
inline constexpr Dim weight_streams(Dim tokens) {
  return tokens == 1 ? 8 : tokens <= 4 ? 4 : tokens <= few_tokens ? 2 : 1;
}

// Tiles that a worker takes at a time, whole groups of every leaf: tens of microseconds.
inline constexpr Dim tiles_a_part(Dim tokens) {
  return tokens == 1 ? most_tiles_a_call : most_tiles_a_call / 2;
}

// Tiles [range) of the outputs' tiles, counted through all outputs, as steps: of one output after
// the other, a tile of each of its streams.
template <class Formats>
class TileSteps {
 public:
  TileSteps(std::span<const LinearOutput<Formats>> outputs, Dim tokens, Range range)
      : outputs_(outputs), streams_(weight_streams(tokens)), range_(range) {}

  Dim count() const {
    Dim steps = 0;
    each_output([&](const LinearOutput<Formats>&, Dim begin, Dim end) {
      steps += ceil_div(end - begin, streams_);
    });
    return steps;
  }
  // tile(output, number in it) for those of steps [some).
  template <class Tile>
  void visit(Range some, Tile&& tile) const {
    Dim before = 0;  // steps of the outputs before this one
    each_output([&](const LinearOutput<Formats>& output, Dim begin, Dim end) {
      const Dim steps = ceil_div(end - begin, streams_);
      const Dim low = (std::max)(some.begin - before, Dim{0});
      const Dim high = (std::min)(some.end - before, steps);
      before += steps;
      for (Dim i = low; i < high; ++i) {
        for (Dim t = begin + i; t < end; t += steps) tile(output, t);
      }
    });
  }

 private:
  template <class Some>
  void each_output(Some&& some) const {
    Dim first = 0;  // of this output's tiles
    for (const LinearOutput<Formats>& output : outputs_) {
      const Dim begin = (std::max)(range_.begin - first, Dim{0});
      const Dim end = (std::min)(range_.end - first, output.weight->tiles());
      first += output.weight->tiles();
      if (begin < end) some(output, begin, end);
    }
  }

  std::span<const LinearOutput<Formats>> outputs_;
  Dim streams_;
  Range range_;
};

// Hands the tiles of some steps to their leaves. Tiles of neighbouring outputs go together where
// one leaf does both: small matrices alone would be too few to hide the latency of their folds.
template <class Formats>
void run_tiles(Isa isa, const LinearRows& rows, Activations activations,
               const TileSteps<Formats>& steps, Range some) {
  LinearTile tiles[most_tiles_a_call];
  int count = 0;
  LinearLeaf::Call waiting = nullptr;  // for tiles[0, count)
  const LinearOutput<Formats>* last = nullptr;
  LinearLeaf::Call call = nullptr;  // of the last output
  steps.visit(some, [&](const LinearOutput<Formats>& output, Dim t) {
    const PackedMatrix<Formats>& weight = *output.weight;
    if (&output != last) {
      last = &output;
      const LinearLeaf& leaf = linear_leaf_of_tag<Formats>(weight.tag(), isa);
      const bool integers = activations == Activations::int8 && leaf.int8 != nullptr;
      call = integers ? leaf.int8 : leaf.f32;
    }
    if (count == most_tiles_a_call || (count > 0 && call != waiting)) {
      waiting(tiles, count, rows);
      count = 0;
    }
    const Dim row = t * tile_rows;
    tiles[count++] = {weight.tile(t), output.y.data + row, output.y.extent(1),
                      static_cast<int>((std::min)(Dim{tile_rows}, weight.out() - row)),
                      output.accumulate};
    waiting = call;
    if constexpr (counts_cost) {
      const Dim used = tiles[count - 1].rows;
      CostCounter::add(rows.counted.part, 2 * used * rows.in * rows.tokens,
                       used * static_cast<Dim>(weight.bytes_of_row()));
    }
  });
  if (count > 0) waiting(tiles, count, rows);
}

// Below this many multiply-adds (some microseconds) waking other threads costs more than it saves.
inline constexpr Dim one_thread_work = Dim{1} << 17;
// Below this many (some tens of microseconds) evening out the work costs more than it saves.
inline constexpr Dim uneven_work = Dim{1} << 21;

// Rows [first, first + count) of x as groups from `first` on; of them, only rows in `range`.
inline void quantize_rows(QuantizeRow leaf, MatView<const float> x, const QuantizedRows& to,
                          Dim first, Dim count, Range range) {
  const Dim begin = (std::max)(range.begin, first), end = (std::min)(range.end, first + count);
  for (Dim t = begin; t < end; ++t) {
    const Dim token = (t - first) % QuantizedGroup::most;
    const Dim start = t - token;
    const Dim together = (std::min)(QuantizedGroup::most, first + count - start);
    leaf(x.row(t), x.extent(1), to.group(start, together), token);
  }
}
// some(range) for parts of [0, rows) on all threads, or on this one.
template <class Some>
void share_rows(Executor& team, Dim rows, Dim in, bool alone, Some&& some) {
  if (alone || rows * in < one_thread_work) return some(Range{0, rows});
  team.run([&](Worker worker) { some(share(rows, worker)); });
}

// What a group asks for, in tiles times rows of x.
template <class Formats>
Dim work_of(const LinearGroup<Formats>& group) {
  Dim tiles = 0;
  for (const LinearOutput<Formats>& output : group.used()) tiles += output.weight->tiles();
  return tiles * group.count;
}

// The part of all groups' work, counted through them, that lies in `range`: whole tiles, those that
// begin there.
template <class Formats>
void run_groups(Isa isa, const LinearRows& rows, std::span<const LinearGroup<Formats>> groups,
                Activations activations, Range range) {
  Dim before = 0;  // work of the groups before this one
  for (const LinearGroup<Formats>& group : groups) {
    const Dim work = work_of(group);
    const Dim low = (std::max)(range.begin - before, Dim{0});
    const Dim high = (std::min)(range.end - before, work);
    before += work;
    if (low >= high) continue;
    const Range tiles{ceil_div(low, group.count), ceil_div(high, group.count)};
    const LinearRows mine{rows.x + group.first * rows.in, rows.quantized.from(group.first),
                          group.count, rows.in};
    const TileSteps<Formats> steps(group.used(), group.count, tiles);
    run_tiles<Formats>(isa, mine, activations, steps, {0, steps.count()});
  }
}
}  // namespace detail

// All `outputs` of the same input x [tokens, in], every weight being [., in]. x is quantized once
// when an output needs it; `scratch` must then hold tokens rows of in (see QuantizedRows), else it
// may be empty. Threads share the output rows, and even out long work; small work stays on the
// calling thread.
template <class Formats>
void linear(Executor& team, Isa isa, MatView<const float> x,
            std::span<const LinearOutput<Formats>> outputs, Activations activations,
            const QuantizedRows& scratch = {}) {
  const LinearRows rows{x.data, scratch, x.extent(0), x.extent(1)};
  if (rows.tokens == 0) return;
  Dim tiles = 0;
  bool quantize = false;
  for (const LinearOutput<Formats>& output : outputs) {
    assert(output.weight->in() == rows.in && output.weight->out() <= output.y.extent(1));
    assert(output.y.extent(0) == rows.tokens);
    tiles += output.weight->tiles();
    quantize =
        quantize || detail::linear_leaf_of_tag<Formats>(output.weight->tag(), isa).int8 != nullptr;
  }
  const Dim work = tiles * tile_rows * rows.in * rows.tokens;  // multiply-adds
  const bool alone = team.threads() == 1 || work < detail::one_thread_work;
  if (quantize && activations == Activations::int8) {
    detail::share_rows(team, rows.tokens, rows.in, alone, [&](Range range) {
      detail::quantize_rows(quantize_row(isa), x, scratch, 0, rows.tokens, range);
    });
  }
  const auto steps_of = [&](Worker worker) {
    return detail::TileSteps<Formats>(outputs, rows.tokens, share(tiles, worker));
  };
  const auto run = [&](Worker owner, Range steps) {
    detail::run_tiles<Formats>(isa, rows, activations, steps_of(owner), steps);
  };
  if (alone) return run({0, 1}, {0, steps_of({0, 1}).count()});
  if (work < detail::uneven_work) {
    return team.run([&](Worker worker) { run(worker, {0, steps_of(worker).count()}); });
  }
  const Dim part = detail::tiles_a_part(rows.tokens) / detail::weight_streams(rows.tokens);
  SharedParts parts;
  team.run([&](Worker worker) {
    parts.take(
        worker, part, [&](Worker owner) { return steps_of(owner).count(); }, run);
  });
}

// The products of all `groups`, each of its own rows of x [rows, in], every weight being [., in].
// Threads share groups x output rows, so that few groups of few rows still use all of them; the
// bits are those of linear() on any of the rows alone. `scratch` as there.
template <class Formats>
void linear_groups(Executor& team, Isa isa, MatView<const float> x,
                   std::span<const LinearGroup<Formats>> groups, Activations activations,
                   const QuantizedRows& scratch) {
  const LinearRows rows{x.data, scratch, x.extent(0), x.extent(1)};
  Dim work = 0;
  bool quantize = false;
  for (const LinearGroup<Formats>& group : groups) {
    assert(group.first >= 0 && group.count > 0 && group.first + group.count <= rows.tokens);
    work += detail::work_of(group);
    for (const LinearOutput<Formats>& output : group.used()) {
      assert(output.weight->in() == rows.in && output.y.extent(0) == group.count);
      quantize = quantize ||
                 detail::linear_leaf_of_tag<Formats>(output.weight->tag(), isa).int8 != nullptr;
    }
  }
  const bool alone = team.threads() == 1 || work * tile_rows * rows.in < detail::one_thread_work;
  if (quantize && activations == Activations::int8) {
    detail::share_rows(team, rows.tokens, rows.in, alone, [&](Range range) {
      for (const LinearGroup<Formats>& group : groups) {
        detail::quantize_rows(quantize_row(isa), x, scratch, group.first, group.count, range);
      }
    });
  }
  const auto run = [&](Range range) {
    detail::run_groups<Formats>(isa, rows, groups, activations, range);
  };
  if (alone) return run({0, work});
  SharedParts parts;
  team.run([&](Worker worker) {
    const auto share_of = [&](Worker owner) { return share(work, owner); };
    const Range own = share_of(worker);
    const Dim part = (std::max)(Dim{1}, ceil_div(own.end - own.begin, Dim{4}));
    parts.take(
        worker, part, [&](Worker owner) { return share_of(owner).end - share_of(owner).begin; },
        [&](Worker owner, Range some) {
          const Dim first = share_of(owner).begin;
          run({first + some.begin, first + some.end});
        });
  });
}

}  // namespace tenon::inline TENON_ABI
