#pragma once
// Sequences as lists of pages from one pool (PagedAttention, arXiv 2309.06180): forks share pages
// until one of them writes, and no sequence holds more than it uses, up to one page.
#include <algorithm>
#include <bit>
#include <vector>

#include "../core/memory.hpp"
#include "block_pool.hpp"
#include "row_cache.hpp"
#include "row_planes.hpp"

namespace tenon::inline TENON_ABI {

// A page has PageRows rows of every slot. The pool has Limits::pool_rows rows, rounded up to pages;
// with 0 of them, or more than all sequences could use, Limits::context for each sequence.
template <class ElementFormats, int PageRows = 16>
class Paged {
  static_assert(PageRows > 0 && std::has_single_bit(static_cast<unsigned>(PageRows)),
                "tenon: the rows of a page of Paged must be a power of two, such as 16 or 64, so "
                "that pages and the tiles of attention divide each other");

 public:
  using Formats = ElementFormats;
  static constexpr int page_rows = PageRows;

  Paged(std::span<const RowSpec> slots, const Limits& limits, const PlaneTags& tags)
      : tags_(tags),
        context_(limits.context),
        table_length_(static_cast<std::size_t>(pages_for(limits.context))),
        planes_(slots, tags, rows_in(limits)),
        tables_(table_memory(limits)),
        pool_(pages_of(limits)),
        held_(static_cast<std::size_t>(limits.seqs), 0) {}
  // Rows and block tables, ceil(rows / PageRows) x (PageRows x row bytes + 4) for each sequence.
  static std::size_t bytes(std::span<const RowSpec> slots, const Limits& limits,
                           const PlaneTags& tags) {
    return checked_add(RowPlanes<Formats>::bytes(slots, tags, rows_in(limits)),
                       table_memory(limits));
  }

  const PlaneTags& tags() const { return tags_; }
  static constexpr bool forks = true;
  static constexpr bool shifts = true;

  // Takes the pages that are missing, and copies a shared page that will be written.
  bool reserve(SeqId seq, int rows, int more) {
    if (more > context_ - rows) return false;
    return own(seq, rows / PageRows, pages_for(rows + more), rows % PageRows);
  }
  bool recalls(SeqId, int) const { return true; }
  std::byte* row(SeqId seq, int slot, int plane, int row) {
    return planes_.row(slot, plane, place(seq, row));
  }
  const std::byte* row(SeqId seq, int slot, int plane, int row) const {
    return planes_.row(slot, plane, place(seq, row));
  }
  int contiguous_from(int row) const { return PageRows - row % PageRows; }
  std::size_t row_stride(int slot, int plane) const { return planes_.stride(slot, plane); }
  // `to` is an empty sequence; it shares the pages of the first `rows` rows.
  void fork(SeqId from, SeqId to, int rows) {
    release(to);
    const int pages = pages_for(rows);
    for (int i = 0; i < pages; ++i) {
      pool_.share(page(from, i));
      page(to, i) = page(from, i);
    }
    held_[index(to)] = pages;
  }
  void truncate(SeqId seq, int, int keep) {
    std::int32_t& held = held_[index(seq)];
    for (const int pages = pages_for(keep); held > pages; --held) {
      pool_.give_back(page(seq, held - 1));
    }
  }
  void release(SeqId seq) { truncate(seq, 0, 0); }

  // Copies shared pages that hold rows [from, rows), so that they can be written; false, and
  // nothing changed, when there are not pages enough.
  bool unshare(SeqId seq, int from, int rows) {
    return from >= rows || own(seq, from / PageRows, pages_for(rows), PageRows);
  }
  // Rows [from, from + count) of every slot become rows [to, to + count); to <= from. False, and
  // nothing changed, when a shared page would have to be copied and there is none.
  bool move_rows(SeqId seq, int from, int to, int count) {
    if (count <= 0 || from == to) return true;
    if (!unshare(seq, to, to + count)) return false;
    for (int done = 0; done < count;) {
      const int run =
          (std::min)({count - done, contiguous_from(from + done), contiguous_from(to + done)});
      planes_.move(place(seq, from + done), place(seq, to + done), static_cast<std::size_t>(run));
      done += run;
    }
    return true;
  }

  // Who holds what: all pages, the free ones, holders of one, and the pages of a sequence.
  int pages() const { return pool_.pages(); }
  int free_pages() const { return pool_.free_pages(); }
  int references(int page) const { return pool_.references(page); }
  std::span<const std::int32_t> table(SeqId seq) const {
    return {pages(seq), static_cast<std::size_t>(held_[index(seq)])};
  }

 private:
  static std::size_t index(SeqId seq) { return tenon::index(seq); }
  static int pages_for(int rows) { return rows / PageRows + (rows % PageRows != 0 ? 1 : 0); }
  static std::int32_t pages_of(const Limits& limits) {
    const std::int64_t most = std::int64_t{pages_for(limits.context)} * limits.seqs;
    const std::int64_t pages =
        limits.pool_rows > 0 ? (std::min)(most, std::int64_t{pages_for(limits.pool_rows)}) : most;
    if (pages > 0x7fffffff) {
      fail<CapacityError>("a pool must have at most 2147483647 pages, ", limits.seqs,
                          " sequences of ", limits.context, " rows need ", pages,
                          "; set Limits::pool_rows to what they hold together");
    }
    return static_cast<std::int32_t>(pages);
  }
  // Of a plane, page after page.
  static auto rows_in(const Limits& limits) {
    return [rows = checked_multiply(static_cast<std::size_t>(pages_of(limits)), PageRows)](
               const RowSpec&) { return rows; };
  }
  static std::size_t table_memory(const Limits& limits) {
    const std::size_t entries = checked_multiply(
        static_cast<std::size_t>(pages_for(limits.context)), static_cast<std::size_t>(limits.seqs));
    return checked_multiply(entries, sizeof(std::int32_t));
  }
  static std::size_t first_row(std::int32_t page) {
    return static_cast<std::size_t>(page) * PageRows;
  }
  std::size_t place(SeqId seq, int row) const {
    const auto r = static_cast<std::size_t>(row);
    return first_row(pages(seq)[r / PageRows]) + r % PageRows;
  }
  const std::int32_t* pages(SeqId seq) const {
    return reinterpret_cast<const std::int32_t*>(tables_.data()) + index(seq) * table_length_;
  }
  std::int32_t& page(SeqId seq, int i) { return const_cast<std::int32_t*>(pages(seq))[i]; }

  // Makes pages [from, to) of a sequence its own. Of page `from` the first `rows` rows are copied
  // when it is shared, of later ones all that there is when `rows` is a whole page, else nothing.
  bool own(SeqId seq, int from, int to, int rows) {
    std::int32_t& held = held_[index(seq)];
    int missing = (std::max)(0, to - held);
    for (int i = from; i < (std::min)(to, held); ++i) missing += pool_.references(page(seq, i)) > 1;
    if (missing > pool_.free_pages()) return false;
    for (int i = from; i < (std::min)(to, held); ++i) {
      const std::int32_t shared = page(seq, i);
      if (pool_.references(shared) == 1) continue;
      page(seq, i) = pool_.take();
      const int kept = i == from || rows == PageRows ? rows : 0;
      planes_.move(first_row(shared), first_row(page(seq, i)), static_cast<std::size_t>(kept));
      pool_.give_back(shared);
    }
    for (; held < to; ++held) page(seq, held) = pool_.take();
    return true;
  }

  PlaneTags tags_;
  int context_;
  std::size_t table_length_;
  RowPlanes<Formats> planes_;
  AlignedBuffer tables_;  // [seqs, table_length] page numbers
  BlockPool pool_;
  std::vector<std::int32_t> held_;  // [seqs] entries of its table in use
};

}  // namespace tenon::inline TENON_ABI
