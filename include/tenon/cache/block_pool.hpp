#pragma once
// Pages that sequences share: who holds how many of them, and which are free.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// Reference counts and a free list of `pages` pages, in four bytes each; where their bytes lie is
// the owner's. Nothing allocates after construction.
class BlockPool {
 public:
  static constexpr std::int32_t none = -1;

  // Pages are first handed out in ascending order.
  explicit BlockPool(std::int32_t pages)
      : entries_(static_cast<std::size_t>(pages)), free_(pages), head_(pages > 0 ? 0 : none) {
    for (std::int32_t page = 0; page < pages; ++page) {
      entries_[index(page)] = link(page + 1 < pages ? page + 1 : none);
    }
  }
  std::int32_t pages() const { return static_cast<std::int32_t>(entries_.size()); }
  std::int32_t free_pages() const { return free_; }
  // 0: the page is free.
  std::int32_t references(std::int32_t page) const {
    const std::int32_t entry = entries_[index(page)];
    return entry > 0 ? entry : 0;
  }
  // A free page, now with one reference, or `none`.
  std::int32_t take() {
    if (head_ == none) return none;
    const std::int32_t page = head_;
    head_ = linked(entries_[index(page)]);
    entries_[index(page)] = 1;
    --free_;
    return page;
  }
  // One more holder of a page that somebody holds, and one less; the last one frees it.
  void share(std::int32_t page) { ++entries_[index(page)]; }
  void give_back(std::int32_t page) {
    if (--entries_[index(page)] > 0) return;
    entries_[index(page)] = link(head_);
    head_ = page;
    ++free_;
  }

 private:
  static std::size_t index(std::int32_t page) { return static_cast<std::size_t>(page); }
  // A free page's entry names the next one: 0 for none, else -(next + 1).
  static std::int32_t link(std::int32_t next) { return next == none ? 0 : -next - 1; }
  static std::int32_t linked(std::int32_t entry) { return entry == 0 ? none : -entry - 1; }

  std::vector<std::int32_t> entries_;  // [pages] references when positive, else a link
  std::int32_t free_;
  std::int32_t head_;
};

}  // namespace tenon::inline TENON_ABI
