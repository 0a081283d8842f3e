// Ring: where rows lie, which are forgotten, what going back may ask for, and its bytes.
#include "tenon/cache/ring.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "cache/rows.hpp"
#include "catch.hpp"

using namespace tenon;

namespace {

constexpr PlaneTags f32{0, 0};
constexpr SeqId seq0{0}, seq1{1};

std::vector<RowSpec> window(int reach, int first = 0) {
  return {{{16, 16}, reach, first}};
}

}  // namespace

static_assert(RowCache<Ring<F32>> && !Ring<F32>::forks && !Ring<F32>::shifts);

TEST_CASE("with steps of one token and no rollback a ring holds min(context, window) rows",
          "[ring]") {
  const auto bytes = [](int context, int reach, int first, int step, int rollback) {
    const auto slots = window(reach, first);
    return Ring<F32>::bytes(slots, {1, context, step, rollback}, f32);
  };
  constexpr std::size_t row = 2 * 16 * 4;
  for (const int context : {1, 5, 8, 9, 100, 4096}) {
    CHECK(bytes(context, 8, 0, 1, 0) == row * static_cast<std::size_t>((std::min)(context, 8)));
  }
  CHECK(bytes(100, 8, 0, 4, 3) == row * (7 + 4 + 3));
  CHECK(bytes(100, 8, 2, 4, 3) == row * (2 + 7 + 4 + 3));
  CHECK(bytes(100, 0, 0, 4, 3) == row * 100);
  CHECK(bytes(100, 0, 4, 4, 3) == row * 100);
  CHECK(bytes(10, 8, 4, 4, 3) == row * 10);
  CHECK(bytes(3, 8, 4, 4, 3) == row * 3);
  CHECK(bytes(1 << 28, 2147483647, 2147483647, 1 << 20, 1 << 20) == row << 28);
  // Three sequences, keys in floats and values in bytes.
  const auto slots = window(8);
  using Mixed = Ring<AnyOf<F32, F16>>;
  CHECK(Mixed::bytes(slots, {3, 100, 1}, {0, 1}) == 3 * 8 * (16 * 4 + 16 * 2));
  CHECK_THROWS_AS((Ring<F32>::bytes(std::vector<RowSpec>{{{Dim{1} << 58, 0}, 1 << 20, 0}},
                                    {1 << 20, 1 << 20, 1}, f32)),
                  CapacityError);
}

TEST_CASE("a row takes the place of the one a capacity before it; sinks stay", "[ring]") {
  const auto slots = window(4, 2);  // 2 + 4 - 1 + 2 = 7 rows
  Ring<F32> ring(slots, {.seqs = 2, .context = 40, .step_tokens = 2}, f32);
  const std::byte* base = ring.row(seq0, 0, 0, 0);
  const std::size_t stride = ring.row_stride(0, 0);
  CHECK(stride == 64);
  const auto place = [&](int row) {
    return static_cast<std::size_t>(ring.row(seq0, 0, 0, row) - base) / stride;
  };
  for (const int row : {0, 1, 2, 6}) CHECK(place(row) == static_cast<std::size_t>(row));
  CHECK(place(7) == 2);
  CHECK(place(8) == 3);
  CHECK(place(11) == 6);
  CHECK(place(12) == 2);
  CHECK(place(39) == 4);
  CHECK(static_cast<std::size_t>(ring.row(seq1, 0, 0, 0) - base) == 7 * stride);
  CHECK(ring.contiguous_from(0) == 7);
  CHECK(ring.contiguous_from(1) == 6);
  CHECK(ring.contiguous_from(2) == 5);
  CHECK(ring.contiguous_from(6) == 1);
  CHECK(ring.contiguous_from(7) == 5);
  CHECK(ring.contiguous_from(39) == 1);
  for (int row = 0; row < 39; ++row) {
    const int run = ring.contiguous_from(row);
    for (int i = 1; i < run; ++i) {
      CHECK(place(row + i) == place(row) + static_cast<std::size_t>(i));
    }
  }
}

TEST_CASE("slots of one ring may reach back by different numbers of rows", "[ring]") {
  const std::vector<RowSpec> slots{{{16, 16}, 4, 0}, {{16, 0}, 0, 0}, {{16, 16}, 9, 1}};
  Ring<F32> ring(slots, {.seqs = 1, .context = 32, .step_tokens = 1}, f32);
  const auto place = [&](int slot, int row) {
    return static_cast<std::size_t>(ring.row(seq0, slot, 0, row) - ring.row(seq0, slot, 0, 0)) / 64;
  };
  CHECK(place(0, 5) == 1);
  CHECK(place(1, 5) == 5);
  CHECK(place(2, 11) == 2);
  CHECK(ring.contiguous_from(2) == 2);   // slot 0 wraps
  CHECK(ring.contiguous_from(8) == 2);   // slot 2 does
  CHECK(ring.contiguous_from(30) == 2);  // the end of the context, and slot 0
  CHECK(Ring<F32>::bytes(slots, {.seqs = 1, .context = 32, .step_tokens = 1}, f32) ==
        64 * (2 * 4 + 32 + 2 * 10));
}

TEST_CASE("recalls says exactly whether all rows that the next query sees are there", "[ring]") {
  std::mt19937 draw(11);
  const auto below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    const Limits limits{1, 20 + below(60), 1 + below(5), below(6)};
    std::vector<RowSpec> slots;
    for (int i = below(3); i >= 0; --i) slots.push_back({{16, 0}, below(12), below(4)});
    Ring<F32> ring(slots, limits, f32);
    // For each slot which row lies at each place.
    std::vector<std::map<std::byte*, int>> there(slots.size());
    int rows = 0;
    const auto recalled = [&](int to) {
      bool all = true;
      for (std::size_t s = 0; s < slots.size(); ++s) {
        for (int r = 0; r < to; ++r) {
          const bool seen = slots[s].reach == 0 || r < slots[s].first || r > to - slots[s].reach;
          const auto at = there[s].find(ring.row(seq0, static_cast<int>(s), 0, r));
          if (seen && (at == there[s].end() || at->second != r)) all = false;
        }
      }
      return all;
    };
    for (int step = 0; step < 60; ++step) {
      const int more = (std::min)(1 + below(limits.step_tokens), limits.context - rows);
      REQUIRE(ring.reserve(seq0, rows, more));
      for (std::size_t s = 0; s < slots.size(); ++s) {
        for (int r = rows; r < rows + more; ++r) {
          there[s][ring.row(seq0, static_cast<int>(s), 0, r)] = r;
        }
      }
      rows += more;
      for (int to = 0; to <= rows; ++to) CHECK(ring.recalls(seq0, to) == recalled(to));
      const int kept = below(3) == 0 ? below(rows + 1) : rows - below((std::min)(rows, 9) + 1);
      if (below(2) == 0 && ring.recalls(seq0, kept)) {
        ring.truncate(seq0, rows, kept);
        rows = kept;
      }
      if (below(40) == 0) {
        ring.release(seq0);
        rows = 0;
        for (auto& slot : there) slot.clear();
      }
    }
  }
}

TEST_CASE("Limits::rollback rows may always be taken back, after failed steps too", "[ring]") {
  const auto slots = window(5);
  const Limits limits{.seqs = 1, .context = 200, .step_tokens = 7, .rollback = 3};
  Ring<F32> ring(slots, limits, f32);
  for (int rows = 0; rows < 150;) {
    for (int fail = 0; fail < 3; ++fail) {
      REQUIRE(ring.reserve(seq0, rows, 7));
      ring.truncate(seq0, rows + 7, rows);
      CHECK(ring.recalls(seq0, rows));
    }
    const int back = (std::max)(0, rows - 3);
    REQUIRE(ring.recalls(seq0, back));
    ring.truncate(seq0, rows, back);
    REQUIRE(ring.reserve(seq0, back, 7));
    rows = back + 7;
  }
  CHECK_FALSE(ring.recalls(seq0, 100));
  CHECK(ring.recalls(seq0, 0));
  CHECK_FALSE(ring.reserve(seq0, 150, 51));
}

TEST_CASE("rows written are rows read, through wrap-around and of a neighbour", "[ring]") {
  const std::vector<RowSpec> slots{{{20, 7}, 6, 2}, {{3, 40}, 11, 0}};
  const Limits limits{.seqs = 2, .context = 90, .step_tokens = 3, .rollback = 2};
  Ring<AnyOf<F32, Q8_0>> ring(slots, limits, {0, 1});
  for (int rows = 0; rows < 90; rows += 3) {
    for (const SeqId seq : {seq0, seq1}) {
      REQUIRE(ring.reserve(seq, rows, 3));
      for (int r = rows; r < rows + 3; ++r) {
        rows::fill(ring, slots, seq, r, rows::stamp(static_cast<int>(seq), r));
      }
    }
    for (const SeqId seq : {seq0, seq1}) {
      for (int r = 0; r < rows + 3; ++r) {
        for (int slot = 0; slot < 2; ++slot) {
          const RowSpec& spec = slots[static_cast<std::size_t>(slot)];
          if (r >= spec.first && r < rows - spec.reach - 1) continue;
          CHECK(rows::holds(ring, slots, seq, slot, r, rows::stamp(static_cast<int>(seq), r)));
        }
      }
    }
  }
}
