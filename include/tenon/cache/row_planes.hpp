#pragma once
// Where a cache's rows lie: one block of memory, [slot][plane][row], each plane from a cache line
// on.
#include <cstring>
#include <vector>

#include "../core/memory.hpp"
#include "row_cache.hpp"

namespace tenon::inline TENON_ABI {

// Which row of a plane is whose is the policy's to say: `rows_of(slot)` is how many there are of a
// RowSpec, of all sequences together.
template <class Formats>
class RowPlanes {
 public:
  template <class RowsOf>
  RowPlanes(std::span<const RowSpec> slots, const PlaneTags& tags, RowsOf&& rows_of)
      : memory_(bytes(slots, tags, rows_of)) {
    std::size_t at = 0;
    for (const RowSpec& slot : slots) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t stride = plane_row_bytes<Formats>(slot.widths[p], tags[p]);
        planes_.push_back({at, stride});
        at += plane_bytes(stride, rows_of(slot));
      }
    }
  }
  template <class RowsOf>
  static std::size_t bytes(std::span<const RowSpec> slots, const PlaneTags& tags,
                           RowsOf&& rows_of) {
    std::size_t total = 0;
    for (const RowSpec& slot : slots) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t stride = plane_row_bytes<Formats>(slot.widths[p], tags[p]);
        total = checked_add(total, plane_bytes(stride, rows_of(slot)));
      }
    }
    return total;
  }

  std::size_t stride(int slot, int plane) const { return at(slot, plane).stride; }  // bytes
  std::byte* row(int slot, int plane, std::size_t row) {
    const Plane& p = at(slot, plane);
    return memory_.data() + p.offset + row * p.stride;
  }
  const std::byte* row(int slot, int plane, std::size_t row) const {
    const Plane& p = at(slot, plane);
    return memory_.data() + p.offset + row * p.stride;
  }
  // Rows [from, from + count) of every plane become rows [to, to + count); they may overlap.
  void move(std::size_t from, std::size_t to, std::size_t count) {
    for (const Plane& p : planes_) {
      if (p.stride == 0 || count == 0) continue;
      std::byte* base = memory_.data() + p.offset;
      std::memmove(base + to * p.stride, base + from * p.stride, count * p.stride);
    }
  }

 private:
  struct Plane {
    std::size_t offset = 0, stride = 0;
  };
  static std::size_t plane_bytes(std::size_t stride, std::size_t rows) {
    return round_up(checked_multiply(stride, rows), cache_line);
  }
  const Plane& at(int slot, int plane) const {
    return planes_[static_cast<std::size_t>(2 * slot + plane)];
  }

  std::vector<Plane> planes_;  // [slots, 2]
  AlignedBuffer memory_;
};

}  // namespace tenon::inline TENON_ABI
