#pragma once
// The plainest cache: every sequence has room for Limits::context rows, one after another.
#include "row_cache.hpp"
#include "row_planes.hpp"

namespace tenon::inline TENON_ABI {

template <class ElementFormats>
class Contiguous {
 public:
  using Formats = ElementFormats;

  Contiguous(std::span<const RowSpec> slots, const Limits& limits, const PlaneTags& tags)
      : tags_(tags), context_(limits.context), planes_(slots, tags, rows_in(limits)) {}
  static std::size_t bytes(std::span<const RowSpec> slots, const Limits& limits,
                           const PlaneTags& tags) {
    return RowPlanes<Formats>::bytes(slots, tags, rows_in(limits));
  }

  const PlaneTags& tags() const { return tags_; }
  static constexpr bool forks = true;
  static constexpr bool shifts = true;

  bool reserve(SeqId, int rows, int more) { return more <= context_ - rows; }
  bool recalls(SeqId, int) const { return true; }
  std::byte* row(SeqId seq, int slot, int plane, int row) {
    return planes_.row(slot, plane, place(seq, row));
  }
  const std::byte* row(SeqId seq, int slot, int plane, int row) const {
    return planes_.row(slot, plane, place(seq, row));
  }
  int contiguous_from(int row) const { return context_ - row; }
  std::size_t row_stride(int slot, int plane) const { return planes_.stride(slot, plane); }
  void fork(SeqId from, SeqId to, int rows) {
    planes_.move(place(from, 0), place(to, 0), static_cast<std::size_t>(rows));
  }
  void truncate(SeqId, int, int) {}
  void release(SeqId) {}
  bool unshare(SeqId, int, int) { return true; }
  // Rows [from, from + count) of every slot become rows [to, to + count).
  bool move_rows(SeqId seq, int from, int to, int count) {
    planes_.move(place(seq, from), place(seq, to), static_cast<std::size_t>(count));
    return true;
  }

 private:
  static auto rows_in(const Limits& limits) {
    return [&limits](const RowSpec&) {
      return checked_multiply(static_cast<std::size_t>(limits.context),
                              static_cast<std::size_t>(limits.seqs));
    };
  }
  std::size_t place(SeqId seq, int row) const {
    return index(seq) * static_cast<std::size_t>(context_) + static_cast<std::size_t>(row);
  }

  PlaneTags tags_;
  int context_;
  RowPlanes<Formats> planes_;
};

}  // namespace tenon::inline TENON_ABI
