// Paged: pages shared and copied, handed out and given back, all or nothing, without allocation.
#include "tenon/cache/paged.hpp"

#include "allocations.hpp"
#include "cache/rows.hpp"
#include "catch.hpp"

using namespace tenon;

namespace {

constexpr PlaneTags f32{0, 0};
constexpr SeqId a{0}, b{1}, c{2};
const std::vector<RowSpec> slots{{{8, 8}, 0, 0}, {{4, 0}, 0, 0}};
using Small = Paged<F32, 4>;

template <class C>
void append(C& cache, SeqId seq, int rows, int more, int who) {
  REQUIRE(cache.reserve(seq, rows, more));
  for (int r = rows; r < rows + more; ++r) rows::fill(cache, slots, seq, r, rows::stamp(who, r));
}
template <class C>
bool all_hold(const C& cache, SeqId seq, int from, int to, int who) {
  bool all = true;
  for (int r = from; r < to; ++r) {
    for (int slot = 0; slot < 2; ++slot) {
      all = all && rows::holds(cache, slots, seq, slot, r, rows::stamp(who, r));
    }
  }
  return all;
}

}  // namespace

static_assert(RowCache<Paged<F32>> && Paged<F32>::forks && Paged<F32>::shifts);
static_assert(Paged<F32>::page_rows == 16);

TEST_CASE("bytes are whole pages of rows and four per table entry", "[paged]") {
  constexpr std::size_t row = (8 + 8 + 4) * 4;
  const auto bytes = [](int seqs, int context, int pool_rows) {
    return Paged<F32, 16>::bytes(slots, {.seqs = seqs, .context = context, .pool_rows = pool_rows},
                                 f32);
  };
  for (const int s : {1, 15, 16, 17, 100, 1000}) {
    const std::size_t pages = static_cast<std::size_t>((s + 15) / 16);
    CHECK(bytes(1, s, 0) == pages * 16 * row + 4 * pages);
    CHECK(bytes(3, s, 0) == 3 * (pages * 16 * row + 4 * pages));
  }
  CHECK(bytes(4, 100, 33) == 48 * row + 4 * 4 * 7);   // rounded up to pages
  CHECK(bytes(4, 100, 1 << 30) == bytes(4, 100, 0));  // more than can be used
  CHECK_THROWS_AS(bytes(1 << 20, 1 << 28, 0), CapacityError);
  const Limits limits{.seqs = 4, .context = 100, .pool_rows = 33};
  CHECK(Paged<F32, 16>(slots, limits, f32).pages() == 3);
}

TEST_CASE("one slot's consecutive pages lie next to each other", "[paged]") {
  Small cache(slots, {.seqs = 2, .context = 16}, f32);
  REQUIRE(cache.reserve(a, 0, 9));
  for (int r = 0; r < 9; ++r) {
    CHECK(cache.row(a, 0, 0, r) - cache.row(a, 0, 0, 0) == 32 * r);
    CHECK(cache.row(a, 1, 0, r) - cache.row(a, 1, 0, 0) == 16 * r);
    CHECK(cache.contiguous_from(r) == 4 - r % 4);
  }
  CHECK(cache.free_pages() == 5);
  CHECK(cache.references(0) == 1);
  CHECK(cache.references(3) == 0);
}

TEST_CASE("forks share pages until one of them writes", "[paged]") {
  Small cache(slots, {.seqs = 3, .context = 20}, f32);
  append(cache, a, 0, 10, 1);
  CHECK(cache.free_pages() == 12);
  cache.fork(a, b, 10);
  cache.fork(a, c, 7);
  CHECK(cache.free_pages() == 12);
  CHECK(cache.references(cache.table(a)[0]) == 3);
  CHECK(cache.references(cache.table(a)[1]) == 3);
  CHECK(cache.references(cache.table(a)[2]) == 2);
  CHECK(cache.table(c).size() == 2);

  append(cache, a, 10, 4, 2);  // copies page 2, takes page 3
  CHECK(cache.free_pages() == 10);
  CHECK(cache.references(cache.table(b)[2]) == 1);
  CHECK(cache.table(a)[1] == cache.table(b)[1]);
  append(cache, b, 10, 1, 3);  // page 2 is its own by now
  CHECK(cache.free_pages() == 10);
  append(cache, c, 7, 1, 4);
  CHECK(cache.free_pages() == 9);
  CHECK(all_hold(cache, a, 0, 10, 1));
  CHECK(all_hold(cache, a, 10, 14, 2));
  CHECK(all_hold(cache, b, 0, 10, 1));
  CHECK(all_hold(cache, b, 10, 11, 3));
  CHECK(all_hold(cache, c, 0, 7, 1));
  CHECK(all_hold(cache, c, 7, 8, 4));

  cache.truncate(a, 14, 4);
  CHECK(cache.table(a).size() == 1);
  CHECK(cache.free_pages() == 11);
  append(cache, a, 4, 1, 5);  // a page border: nothing to copy
  CHECK(all_hold(cache, b, 0, 10, 1));
  for (const SeqId seq : {a, b, c}) cache.release(seq);
  CHECK(cache.free_pages() == 15);
  for (int page = 0; page < 15; ++page) CHECK(cache.references(page) == 0);
}

TEST_CASE("reserve is all or nothing", "[paged]") {
  Small cache(slots, {.seqs = 3, .context = 20, .pool_rows = 20}, f32);  // 5 pages
  CHECK(cache.pages() == 5);
  append(cache, a, 0, 10, 1);
  cache.fork(a, b, 10);
  const std::vector<std::int32_t> before(cache.table(b).begin(), cache.table(b).end());
  CHECK_FALSE(cache.reserve(b, 10, 10));  // a copy and two more, two are free
  CHECK(cache.free_pages() == 2);
  CHECK(std::equal(before.begin(), before.end(), cache.table(b).begin(), cache.table(b).end()));
  CHECK(cache.references(before[2]) == 2);
  CHECK_FALSE(cache.reserve(b, 10, 11));  // beyond the context
  append(cache, b, 10, 6, 2);
  CHECK(cache.free_pages() == 0);
  CHECK_FALSE(cache.reserve(c, 0, 1));
  CHECK(cache.table(c).empty());
  append(cache, a, 10, 2, 3);  // room in its page, which is its own now
  CHECK_FALSE(cache.reserve(a, 12, 1));
  cache.truncate(b, 16, 12);
  append(cache, a, 12, 1, 3);
  CHECK(all_hold(cache, b, 0, 10, 1));
  CHECK(all_hold(cache, b, 10, 12, 2));
  CHECK(all_hold(cache, a, 10, 13, 3));
}

TEST_CASE("rows move down; shared pages are copied first, or nothing happens", "[paged]") {
  Small cache(slots, {.seqs = 2, .context = 20, .pool_rows = 24}, f32);  // 6 pages
  append(cache, a, 0, 15, 1);
  cache.fork(a, b, 15);
  // Rows 3 and 4 go; the 10 after them move down: pages 0 to 3 change, 2 are free.
  CHECK_FALSE(cache.move_rows(b, 5, 3, 10));
  CHECK(cache.free_pages() == 2);
  CHECK(all_hold(cache, b, 0, 15, 1));
  CHECK(cache.move_rows(b, 14, 9, 1));  // page 2 alone
  CHECK(cache.free_pages() == 1);
  CHECK(all_hold(cache, a, 0, 15, 1));
  CHECK(all_hold(cache, b, 0, 9, 1));
  CHECK(rows::holds(cache, slots, b, 0, 9, rows::stamp(1, 14)));
  CHECK(all_hold(cache, b, 10, 15, 1));
  cache.release(b);
  CHECK(cache.move_rows(a, 5, 3, 10));
  for (int r = 0; r < 13; ++r) {
    for (int slot = 0; slot < 2; ++slot) {
      CHECK(rows::holds(cache, slots, a, slot, r, rows::stamp(1, r < 3 ? r : r + 2)));
    }
  }
}

TEST_CASE("pages come and go without allocation", "[paged]") {
  Small cache(slots, {.seqs = 3, .context = 40, .pool_rows = 56}, f32);
  const std::size_t before = test::allocations_so_far();
  bool worked = true;
  for (int round = 0; round < 50; ++round) {
    worked = worked && cache.reserve(a, 0, 13) && cache.reserve(a, 13, 9);
    cache.fork(a, b, 22);
    cache.fork(b, c, 22);
    worked = worked && cache.reserve(b, 22, 3) && cache.reserve(c, 22, 9) &&
             !cache.reserve(a, 22, 18) && cache.move_rows(c, 20, 18, 2);
    cache.truncate(a, 22, 5);
    for (const SeqId seq : {c, a, b}) cache.release(seq);
  }
  const std::size_t after = test::allocations_so_far();
  CHECK(worked);
  CHECK(cache.free_pages() == 14);
  CHECK(after == before);
}
