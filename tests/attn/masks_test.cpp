// Every mask says the same thing four ways: keep() for a pair, keep_bits() for 64 keys, classify()
// for ranges and reach() for what is worth looking at. Checked against keep() for all small ranges.
#include <vector>

#include "catch.hpp"
#include "tenon/attn/masks.hpp"
#include "tenon/attn/tree.hpp"
#include "tenon/model/token_trees.hpp"

using namespace tenon;

namespace {

// `cached` rows of one sequence, of which those from `base` on are the step's queries.
template <class M>
void check_consistent(const M& mask, int base, int cached) {
  for (int low = base; low < cached; low += 3) {
    for (int high = low + 1; high <= cached; high += 5) {
      const Rows queries{low, high};
      const Rows reach = mask.reach(queries, cached);
      const auto seen = [&](int query, int key) { return key < cached && mask.keep(query, key); };
      REQUIRE(reach.low >= 0);
      REQUIRE(reach.high <= cached);
      for (int query = low; query < high; ++query) {
        for (int key = 0; key < cached; ++key) {
          const bool reached = (key >= reach.low && key < reach.high) || key < first_rows(mask);
          if (seen(query, key)) REQUIRE(reached);
          if constexpr (M::bounded) {
            const bool near = key > query - mask.rows_back() || key < first_rows(mask);
            if (seen(query, key)) REQUIRE(near);
          }
        }
        for (const int first : {0, 17, 64}) {
          const std::uint64_t bits = keep_bits(mask, query, first);
          for (int i = 0; i < 64 && first + i < cached; ++i) {
            REQUIRE(((bits >> i & 1) != 0) == mask.keep(query, first + i));
          }
        }
      }
      for (int k = 0; k < cached; k += 7) {
        for (int end = k + 1; end <= cached; end += 4) {
          int kept = 0;
          for (int query = low; query < high; ++query) {
            for (int key = k; key < end; ++key) kept += seen(query, key) ? 1 : 0;
          }
          const Coverage coverage = mask.classify(queries, {k, end});
          if (coverage == Coverage::skip) REQUIRE(kept == 0);
          if (coverage == Coverage::full) REQUIRE(kept == (high - low) * (end - k));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("masks agree with themselves", "[attn]") {
  check_consistent(Causal{}, 0, 40);
  for (const int window : {1, 2, 7, 16, 100}) {
    for (const int sinks : {0, 1, 4, 30}) check_consistent(SlidingWindow{window, sinks}, 0, 40);
  }
  check_consistent(Bidirectional{}, 0, 40);
  for (const int block : {1, 3, 16, 64}) check_consistent(BlockCausal{block}, 0, 40);
}

TEST_CASE("windows and sinks keep exactly these rows", "[attn]") {
  // The published example: window 8, of which 2 are sinks, at row 20.
  const SlidingWindow sinks{6, 2};
  std::vector<int> kept;
  for (int key = 0; key <= 20; ++key) {
    if (sinks.keep(20, key)) kept.push_back(key);
  }
  CHECK(kept == std::vector<int>{0, 1, 15, 16, 17, 18, 19, 20});
  // W keys, the current one included.
  const SlidingWindow window{3, 0};
  CHECK(window.keep(5, 3));
  CHECK_FALSE(window.keep(5, 2));
  CHECK_FALSE(window.keep(5, 6));
  CHECK(window.reach({5, 6}, 100).low == 3);
}

TEST_CASE("a token tree sees its ancestors and nothing of its siblings", "[attn]") {
  const std::vector<int> parents{-1, 0, 0, 1, 2, -1, 5};
  constexpr int base = 10;
  const int count = static_cast<int>(parents.size());
  TokenTrees trees;
  trees.reserve(count);
  SeqStep seq{SeqId{0}, 0, count, base, nullptr, nullptr};
  trees.grow(parents, seq);
  const std::vector<int> depths{0, 1, 1, 2, 2, 0, 1};
  for (int i = 0; i < count; ++i) CHECK(seq.depths[i] == depths[static_cast<std::size_t>(i)]);

  const Tree<Causal> causal;
  const auto mask = causal.in(seq);
  for (int node = 0; node < count; ++node) {
    std::vector<bool> ancestor(parents.size());
    for (int at = node; at >= 0; at = parents[static_cast<std::size_t>(at)]) {
      ancestor[static_cast<std::size_t>(at)] = true;
    }
    for (int key = 0; key < base; ++key) CHECK(mask.keep(base + node, key));
    for (int key = 0; key < count; ++key) {
      CHECK(mask.keep(base + node, base + key) == ancestor[static_cast<std::size_t>(key)]);
    }
  }
  check_consistent(mask, base, base + count);

  // A window counts along the path: node 3 (depth 2) stands at row 12 of its own path.
  const Tree<SlidingWindow> windowed{{4, 0}};
  const auto near = windowed.in(seq);
  CHECK(near.keep(base + 3, 9));
  CHECK_FALSE(near.keep(base + 3, 8));
  CHECK(near.keep(base + 3, base));
  for (int low = 0; low < base; ++low) {
    if (near.keep(base + 3, low)) CHECK(low >= near.reach({base + 3, base + 4}, 17).low);
  }

  // A chain of parents is the mask itself.
  const std::vector<int> chain{-1, 0, 1, 2, 3};
  trees.clear();
  SeqStep straight{SeqId{0}, 0, 5, base, nullptr, nullptr};
  trees.grow(chain, straight);
  const auto same = windowed.in(straight);
  for (int query = base; query < base + 5; ++query) {
    for (int key = 0; key < base + 5; ++key) {
      CHECK(same.keep(query, key) == SlidingWindow{4, 0}.keep(query, key));
    }
  }
}

TEST_CASE("a parent must be an earlier token", "[attn]") {
  TokenTrees trees;
  trees.reserve(8);
  for (const std::vector<int>& parents : {std::vector<int>{0}, std::vector<int>{-1, 1},
                                          std::vector<int>{-1, 2, 0}, std::vector<int>{-2}}) {
    trees.clear();
    SeqStep seq{SeqId{3}, 0, static_cast<int>(parents.size()), 0, nullptr, nullptr};
    CHECK_THROWS_AS(trees.grow(parents, seq), RequestError);
  }
}
