#pragma once
// The cache of a bounded mask (Longformer, arXiv 2004.05150; Mistral, arXiv 2310.06825): a new row
// takes the place of one that no query will see again, so it stops growing at the window.
#include <algorithm>
#include <vector>

#include "row_cache.hpp"
#include "row_planes.hpp"

namespace tenon::inline TENON_ABI {

// Each slot keeps the last RowSpec::reach - 1 + Limits::step_tokens + Limits::rollback rows of a
// sequence (of a reach of 0 all), at most Limits::context: what the first query of the largest step
// sees, that step, and what truncate() may take back. In front of them the first RowSpec::first
// rows stay for good (attention sinks, arXiv 2309.17453). With steps of one token and no rollback
// that is min(context, reach) rows.
template <class ElementFormats>
class Ring {
 public:
  using Formats = ElementFormats;

  Ring(std::span<const RowSpec> slots, const Limits& limits, const PlaneTags& tags)
      : tags_(tags),
        context_(limits.context),
        rollback_(limits.rollback),
        planes_(slots, tags, rows_in(limits)) {
    for (const RowSpec& slot : slots) {
      const Layout layout = layout_of(slot, limits);
      const auto same = std::find(layouts_.begin(), layouts_.end(), layout);
      slot_layouts_.push_back(static_cast<std::size_t>(same - layouts_.begin()));
      if (same == layouts_.end()) layouts_.push_back(layout);
    }
    lost_.assign(layouts_.size() * static_cast<std::size_t>(limits.seqs), 0);
  }
  static std::size_t bytes(std::span<const RowSpec> slots, const Limits& limits,
                           const PlaneTags& tags) {
    return RowPlanes<Formats>::bytes(slots, tags, rows_in(limits));
  }

  const PlaneTags& tags() const { return tags_; }
  static constexpr bool for_windows = true;  // of no use to a mask that sees everything
  static constexpr bool forks = false;   // a copy would share rows that the next step overwrites
  static constexpr bool shifts = false;  // the rows that would move in are gone

  // A step's rows count as written from here on, also when the step then fails: what it may have
  // overwritten lies below what Limits::rollback promises, by Limits::step_tokens rows.
  bool reserve(SeqId seq, int rows, int more) {
    if (more > context_ - rows) return false;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      if (layouts_[i].oldest_seen(rows) < lost_after(seq, i, rows + more)) return false;
    }
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      lost(seq, i) = lost_after(seq, i, rows + more);
    }
    return true;
  }
  // Going back does not bring overwritten rows back: is every row that a query at `rows` sees
  // there?
  bool recalls(SeqId seq, int rows) const {
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      const int oldest = layouts_[i].oldest_seen(rows);
      if (oldest < lost(seq, i) && oldest < rows) return false;
    }
    return true;
  }
  std::byte* row(SeqId seq, int slot, int plane, int row) {
    return planes_.row(slot, plane, place(seq, slot, row));
  }
  const std::byte* row(SeqId seq, int slot, int plane, int row) const {
    return planes_.row(slot, plane, place(seq, slot, row));
  }
  // In every slot.
  int contiguous_from(int row) const {
    int run = context_ - row;
    for (const Layout& layout : layouts_) {
      run = (std::min)(run, layout.first + layout.capacity - layout.place(row));
    }
    return run;
  }
  std::size_t row_stride(int slot, int plane) const { return planes_.stride(slot, plane); }
  void truncate(SeqId seq, int, int keep) {
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      lost(seq, i) = (std::min)(lost(seq, i), keep);
    }
  }
  void release(SeqId seq) { truncate(seq, 0, 0); }

  // For saving and restoring, of a slot whose sequence has `rows` rows; besides the first
  // RowSpec::first ones. The oldest row that is there and that a query may still see, after going
  // back by as much as Limits::rollback too:
  int oldest_kept(SeqId seq, int slot, int rows) const {
    const std::size_t i = layout_index(slot);
    const int seen = layouts_[i].oldest_seen((std::max)(0, rows - rollback_));
    return (std::min)(rows, (std::max)(seen, lost(seq, i)));
  }
  // The oldest row that the next query sees.
  int oldest_needed(int slot, int rows) const {
    return layouts_[layout_index(slot)].oldest_seen(rows);
  }
  // Makes an empty sequence one of `rows` rows that lacks those of the slot below `oldest`, and
  // those that have no place; all from `oldest` on may then be written in ascending order. False,
  // and nothing changed, when there is no room.
  bool adopt(SeqId seq, int slot, int rows, int oldest) {
    if (rows > context_) return false;
    const std::size_t i = layout_index(slot);
    lost(seq, i) = (std::max)(lost_after(seq, i, rows), oldest);
    return true;
  }

 private:
  // Where the rows of a slot lie: row r < first at r, a later one at first + (r - first) %
  // capacity.
  struct Layout {
    std::size_t rows() const {
      return static_cast<std::size_t>(first) + static_cast<std::size_t>(capacity);
    }
    int first = 0, capacity = 0, reach = 0;
    bool operator==(const Layout&) const = default;
    int place(int row) const { return row < first ? row : first + (row - first) % capacity; }
    // The oldest row that a query at `row` sees, besides the first ones.
    int oldest_seen(int row) const {
      return reach == 0 ? first : (std::max)(first, row - reach + 1);
    }
  };
  static Layout layout_of(const RowSpec& slot, const Limits& limits) {
    // One row of the context is left for the ring, so that it has a size.
    const int first = (std::min)(slot.first, limits.context - 1);
    const int most = limits.context - first;
    if (slot.reach == 0) return {first, most, 0};
    const auto wanted = std::int64_t{slot.reach} - 1 + limits.step_tokens + limits.rollback;
    return {first, static_cast<int>((std::min)(wanted, std::int64_t{most})), slot.reach};
  }
  static auto rows_in(const Limits& limits) {
    return [&limits](const RowSpec& slot) {
      return checked_multiply(layout_of(slot, limits).rows(),
                              static_cast<std::size_t>(limits.seqs));
    };
  }
  std::size_t layout_index(int slot) const { return slot_layouts_[static_cast<std::size_t>(slot)]; }
  std::size_t place(SeqId seq, int slot, int row) const {
    const Layout& layout = layouts_[layout_index(slot)];
    return index(seq) * layout.rows() + static_cast<std::size_t>(layout.place(row));
  }
  // Rows [first, lost) of a sequence are not there any more.
  int& lost(SeqId seq, std::size_t layout) {
    return lost_[tenon::index(seq) * layouts_.size() + layout];
  }
  int lost(SeqId seq, std::size_t layout) const {
    return lost_[tenon::index(seq) * layouts_.size() + layout];
  }
  int lost_after(SeqId seq, std::size_t layout, int rows) const {
    return (std::max)(lost(seq, layout), rows - layouts_[layout].capacity);
  }

  PlaneTags tags_;
  int context_, rollback_;
  std::vector<Layout> layouts_;            // the distinct ones
  std::vector<std::size_t> slot_layouts_;  // [slots]
  std::vector<int> lost_;                  // [seqs, layouts]
  RowPlanes<Formats> planes_;
};

}  // namespace tenon::inline TENON_ABI
