#pragma once
// The plainest cache: every sequence has room for Limits::context rows, one after another.
#include <cstring>
#include <vector>

#include "../core/memory.hpp"
#include "row_cache.hpp"

namespace tenon::inline TENON_ABI {

template <class ElementFormats>
class Contiguous {
 public:
  using Formats = ElementFormats;

  Contiguous(std::span<const RowSpec> slots, const Limits& limits, const PlaneTags& tags)
      : tags_(tags), context_(limits.context), memory_(bytes(slots, limits, tags)) {
    std::size_t at = 0;
    for (const RowSpec& slot : slots) {
      Slot& placed = slots_.emplace_back();
      for (std::size_t p = 0; p < 2; ++p) {
        placed.offset[p] = at;
        placed.stride[p] = plane_row_bytes<Formats>(slot.widths[p], tags[p]);
        at += plane_bytes(placed.stride[p], limits);
      }
    }
  }
  static std::size_t bytes(std::span<const RowSpec> slots, const Limits& limits,
                           const PlaneTags& tags) {
    std::size_t total = 0;
    for (const RowSpec& slot : slots) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t stride = plane_row_bytes<Formats>(slot.widths[p], tags[p]);
        total = checked_add(total, plane_bytes(stride, limits));
      }
    }
    return total;
  }

  const PlaneTags& tags() const { return tags_; }
  static constexpr bool forks = true;
  static constexpr bool shifts = true;

  bool reserve(SeqId, int rows, int more) { return more <= context_ - rows; }
  bool recalls(SeqId, int) const { return true; }
  std::byte* row(SeqId seq, int slot, int plane, int row) {
    return memory_.data() + offset(seq, slot, plane, row);
  }
  const std::byte* row(SeqId seq, int slot, int plane, int row) const {
    return memory_.data() + offset(seq, slot, plane, row);
  }
  int contiguous_from(int row) const { return context_ - row; }
  std::size_t row_stride(int slot, int plane) const {
    return slots_[static_cast<std::size_t>(slot)].stride[static_cast<std::size_t>(plane)];
  }
  void fork(SeqId from, SeqId to, int rows) {
    for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot) {
      for (int plane = 0; plane < 2; ++plane) {
        const std::size_t n = row_stride(slot, plane) * static_cast<std::size_t>(rows);
        if (n > 0) std::memcpy(row(to, slot, plane, 0), row(from, slot, plane, 0), n);
      }
    }
  }
  void truncate(SeqId, int, int) {}
  void release(SeqId) {}
  bool unshare(SeqId, int, int) { return true; }
  // Rows [from, from + count) of every slot become rows [to, to + count).
  bool move_rows(SeqId seq, int from, int to, int count) {
    for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot) {
      for (int plane = 0; plane < 2; ++plane) {
        const std::size_t n = row_stride(slot, plane) * static_cast<std::size_t>(count);
        if (n > 0) std::memmove(row(seq, slot, plane, to), row(seq, slot, plane, from), n);
      }
    }
    return true;
  }

 private:
  struct Slot {
    std::array<std::size_t, 2> offset{}, stride{};
  };
  static std::size_t plane_bytes(std::size_t stride, const Limits& limits) {
    const std::size_t rows = checked_multiply(static_cast<std::size_t>(limits.context),
                                              static_cast<std::size_t>(limits.seqs));
    return round_up(checked_multiply(stride, rows), cache_line);
  }
  std::size_t offset(SeqId seq, int slot, int plane, int row) const {
    const Slot& at = slots_[static_cast<std::size_t>(slot)];
    const auto p = static_cast<std::size_t>(plane);
    const std::size_t index =
        tenon::index(seq) * static_cast<std::size_t>(context_) + static_cast<std::size_t>(row);
    return at.offset[p] + index * at.stride[p];
  }

  PlaneTags tags_;
  int context_;
  std::vector<Slot> slots_;
  AlignedBuffer memory_;
};

}  // namespace tenon::inline TENON_ABI
