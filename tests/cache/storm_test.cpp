// Random operations on every cache against rows kept as plain lists.
#include <numeric>
#include <random>

#include "cache/rows.hpp"
#include "catch.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/cache/ring.hpp"
#include "tenon/cache/saved_rows.hpp"

using namespace tenon;

namespace {

constexpr int seqs = 6;
using Stamps = std::vector<std::uint64_t>;
using Elements = AnyOf<F32, F16, Q8_0>;

template <class C>
inline constexpr bool is_paged = requires(const C k) {
  k.free_pages();
};

template <class C>
class Storm {
 public:
  Storm(std::vector<RowSpec> slots, const Limits& limits, unsigned seed)
      : slots_(std::move(slots)), limits_(limits), cache_(slots_, limits, {0, 2}), draw_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const int seq = below(seqs);
      switch (below(12)) {
        case 0:
          fork(seq, below(seqs));
          break;
        case 1:
          truncate(seq);
          break;
        case 2:
          below(3) == 0 ? release(seq) : shift(seq);
          break;
        case 3:
          save(seq);
          break;
        case 4:
          restore(seq);
          break;
        case 5:
          fail(seq);
          break;
        default:
          append(seq);
      }
      check(seq);
      check(below(seqs));
      check_pool();
    }
    for (int seq = 0; seq < seqs; ++seq) check(seq);
    for (int seq = 0; seq < seqs; ++seq) release(seq);
    check_pool();
    if constexpr (is_paged<C>) CHECK(cache_.free_pages() == cache_.pages());
    CHECK(refused_ > 0);
  }

 private:
  int below(int n) { return static_cast<int>(draw_() % static_cast<unsigned>(n)); }
  static SeqId id(int seq) { return static_cast<SeqId>(seq); }
  Stamps& text(int seq) { return texts_[static_cast<std::size_t>(seq)]; }
  int rows(int seq) { return static_cast<int>(text(seq).size()); }
  int slot_count() const { return static_cast<int>(slots_.size()); }

  void append(int seq) {
    const int more = 1 + below(limits_.step_tokens), now = rows(seq);
    if (!cache_.reserve(id(seq), now, more)) {
      ++refused_;
      if constexpr (is_paged<C>) {
        CHECK((now + more > limits_.context || cache_.free_pages() <= 1 + more / C::page_rows));
      } else {
        CHECK(now + more > limits_.context);
      }
      return;
    }
    for (int r = now; r < now + more; ++r) {
      text(seq).push_back(next_);
      rows::fill(cache_, slots_, id(seq), r, next_++);
    }
  }
  // A step that writes and then fails.
  void fail(int seq) {
    const int more = 1 + below(limits_.step_tokens), now = rows(seq);
    if (!cache_.reserve(id(seq), now, more)) return;
    for (int r = now; r < now + more; ++r) rows::fill(cache_, slots_, id(seq), r, 1);
    cache_.truncate(id(seq), now + more, now);
    CHECK(cache_.recalls(id(seq), now));
  }
  void fork(int from, int to) {
    if constexpr (C::forks) {
      if (from == to) return;
      release(to);
      cache_.fork(id(from), id(to), rows(from));
      text(to) = text(from);
    }
  }
  void truncate(int seq) {
    const int keep =
        below(2) == 0 ? below(rows(seq) + 1) : rows(seq) - below(1 + (std::min)(5, rows(seq)));
    if (!cache_.recalls(id(seq), keep)) return;
    cache_.truncate(id(seq), rows(seq), keep);
    text(seq).resize(static_cast<std::size_t>(keep));
  }
  void release(int seq) {
    cache_.release(id(seq));
    text(seq).clear();
  }
  void shift(int seq) {
    if constexpr (C::shifts) {
      const int keep = below(rows(seq) + 1), n = below(rows(seq) - keep + 1), from = keep + n;
      if (!cache_.move_rows(id(seq), from, keep, rows(seq) - from)) return;
      cache_.truncate(id(seq), rows(seq), rows(seq) - n);
      text(seq).erase(text(seq).begin() + keep, text(seq).begin() + from);
    }
  }
  void save(int seq) {
    Saved& saved = saved_[static_cast<std::size_t>(below(4))];
    saved = {text(seq), {}, {}};
    for (int slot = 0; slot < slot_count(); ++slot) {
      const RowSpec& spec = slots_[static_cast<std::size_t>(slot)];
      const SavedRange range = rows_to_save(cache_, id(seq), slot, spec, rows(seq));
      auto& bytes = saved.bytes.emplace_back(saved_bytes(cache_, slot, range));
      save_rows(cache_, id(seq), slot, range, bytes.data());
      saved.ranges.push_back(range);
      CHECK(suffices(cache_, slot, spec, range));
    }
  }
  void restore(int seq) {
    const Saved& saved = saved_[static_cast<std::size_t>(below(4))];
    release(seq);
    if (saved.ranges.empty()) return;
    for (int slot = 0; slot < slot_count(); ++slot) {
      if (!make_room(cache_, id(seq), slot, saved.ranges[static_cast<std::size_t>(slot)])) {
        return release(seq);
      }
    }
    for (int slot = 0; slot < slot_count(); ++slot) {
      const auto s = static_cast<std::size_t>(slot);
      load_rows(cache_, id(seq), slot, saved.ranges[s], saved.bytes[s].data());
    }
    text(seq) = saved.text;
  }

  void check(int seq) {
    bool all = cache_.recalls(id(seq), rows(seq));
    for (int slot = 0; slot < slot_count(); ++slot) {
      const RowSpec& spec = slots_[static_cast<std::size_t>(slot)];
      for (int r = 0; r < rows(seq); ++r) {
        if (!C::forks && spec.reach > 0 && r >= spec.first && r <= rows(seq) - spec.reach) continue;
        all = all &&
              rows::holds(cache_, slots_, id(seq), slot, r, text(seq)[static_cast<std::size_t>(r)]);
      }
    }
    CHECK(all);
  }
  void check_pool() {
    if constexpr (is_paged<C>) {
      std::vector<int> held(static_cast<std::size_t>(cache_.pages()), 0);
      bool waste = false;
      for (int seq = 0; seq < seqs; ++seq) {
        const auto table = cache_.table(id(seq));
        for (const std::int32_t page : table) ++held[static_cast<std::size_t>(page)];
        waste = waste || static_cast<int>(table.size()) * C::page_rows >= rows(seq) + C::page_rows;
      }
      int free = 0;
      bool same = true;
      for (int page = 0; page < cache_.pages(); ++page) {
        const int references = held[static_cast<std::size_t>(page)];
        same = same && cache_.references(page) == references;
        free += references == 0;
      }
      CHECK(same);
      CHECK_FALSE(waste);
      CHECK(cache_.free_pages() == free);
    }
  }

  struct Saved {
    Stamps text;
    std::vector<SavedRange> ranges;
    std::vector<std::vector<std::byte>> bytes;
  };
  std::vector<RowSpec> slots_;
  Limits limits_;
  C cache_;
  std::mt19937 draw_;
  std::array<Stamps, seqs> texts_;
  std::array<Saved, 4> saved_;
  std::uint64_t next_ = 2;
  int refused_ = 0;
};

const std::vector<RowSpec> slots{{{3, 5}, 0, 0}, {{4, 0}, 0, 0}};
const std::vector<RowSpec> bounded{{{3, 5}, 9, 2}, {{4, 0}, 5, 0}, {{2, 1}, 0, 0}};
constexpr Limits limits{.seqs = seqs, .context = 48, .step_tokens = 7, .rollback = 5};
constexpr Limits scarce{
    .seqs = seqs, .context = 48, .step_tokens = 7, .rollback = 5, .pool_rows = 120};

}  // namespace

TEST_CASE("20000 operations on pages", "[storm]") {
  Storm<Paged<Elements, 4>>(slots, limits, 1).run(5000);
  Storm<Paged<Elements, 4>>(slots, scarce, 2).run(10000);
  Storm<Paged<Elements, 16>>(bounded, scarce, 3).run(5000);
}

TEST_CASE("the same on rows one after another", "[storm]") {
  Storm<Contiguous<Elements>>(slots, limits, 4).run(10000);
}

TEST_CASE("the same on rings, as far as they go", "[storm]") {
  Storm<Ring<Elements>>(bounded, limits, 5).run(10000);
}
