#pragma once
// Byte-pair merging of a run of symbols: the lowest rank first, the leftmost of equals first.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "merge_table.hpp"

namespace tenon::inline TENON_ABI {

// Keys in ascending order, while further keys arrive and others expire. Keys that come later than
// all those at hand, which are most, wait unsorted; the others go through a heap.
class MergeQueue {
 public:
  void clear() {
    sorted_.clear();
    next_ = 0;
    early_.clear();
    late_.clear();
    limit_ = 0;
  }
  void reserve(std::size_t keys) {
    sorted_.reserve(keys);
    late_.reserve(keys);
  }
  void push(std::uint64_t key) {
    if (key > limit_) {
      late_.push_back(key);
      return;
    }
    early_.push_back(key);
    std::push_heap(early_.begin(), early_.end(), std::greater<>());
  }
  // Takes the smallest key for which live(key) holds; false when there is none.
  template <class Live>
  bool pop(std::uint64_t& key, Live live) {
    do {
      if (next_ == sorted_.size() && early_.empty() && !refill(live)) return false;
      if (early_.empty() || (next_ < sorted_.size() && sorted_[next_] < early_.front())) {
        key = sorted_[next_++];
      } else {
        std::pop_heap(early_.begin(), early_.end(), std::greater<>());
        key = early_.back();
        early_.pop_back();
      }
    } while (!live(key));
    return true;
  }

 private:
  template <class Live>
  bool refill(Live live) {
    late_.erase(std::remove_if(late_.begin(), late_.end(), [&](auto key) { return !live(key); }),
                late_.end());
    sorted_.swap(late_);
    late_.clear();
    next_ = 0;
    if (sorted_.empty()) return false;
    if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
    limit_ = sorted_.back();
    return true;
  }

  std::vector<std::uint64_t> sorted_;  // from next_ on
  std::size_t next_ = 0;
  std::vector<std::uint64_t> early_;  // a heap of keys that are at most limit_
  std::vector<std::uint64_t> late_;   // keys above limit_
  std::uint64_t limit_ = 0;           // the last of sorted_
};

// Merges runs of symbols in place. Words are short, so the usual case scans an array; a long run
// (text without spaces) uses a linked list and a queue and takes O(n log n). Both give the same
// symbols. One Merger serves one thread; it keeps its memory between runs.
class Merger {
 public:
  explicit Merger(const MergeTable& table) : table_(table) {}

  void operator()(std::vector<Symbol>& run) {
    if (run.size() < 2) return;
    if (run.size() <= short_run) {
      merge_short(run);
    } else {
      merge_long(run);
    }
  }

 private:
  static constexpr std::size_t short_run = 32;
  static constexpr std::uint32_t end = 0xFFFFFFFF;

  void merge_short(std::vector<Symbol>& run) {
    Merge merges[short_run];  // merges[i]: of symbols i and i + 1
    std::size_t n = run.size();
    for (std::size_t i = 0; i + 1 < n; ++i) merges[i] = table_.find(run[i], run[i + 1]);
    while (n > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < n; ++i) {
        if (merges[i].rank < merges[best].rank) best = i;
      }
      if (merges[best].rank == Merge::never) break;
      run[best] = merges[best].piece;
      --n;
      for (std::size_t i = best + 1; i < n; ++i) {
        run[i] = run[i + 1];
        merges[i - 1] = merges[i];
      }
      if (best + 1 < n) merges[best] = table_.find(run[best], run[best + 1]);
      if (best > 0) merges[best - 1] = table_.find(run[best - 1], run[best]);
    }
    run.resize(n);
  }

  void merge_long(std::vector<Symbol>& run) {
    const auto n = static_cast<std::uint32_t>(run.size());
    nodes_.resize(n);
    for (std::uint32_t i = 0; i < n; ++i) nodes_[i] = {run[i], i - 1, i + 1, Merge::never};
    nodes_[0].previous = end;
    nodes_[n - 1].next = end;
    queue_.clear();
    queue_.reserve(n);
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      nodes_[i].rank = table_.find(run[i], run[i + 1]).rank;
      if (nodes_[i].rank != Merge::never) queue_.push(key(nodes_[i].rank, i));
    }
    // A key whose node has merged since, on either side, no longer has the node's rank; if by
    // chance it has, it names the merge that is due there now.
    const auto live = [this](std::uint64_t due) {
      return nodes_[static_cast<std::uint32_t>(due)].rank == static_cast<std::uint32_t>(due >> 32);
    };
    for (std::uint64_t due = 0; queue_.pop(due, live);) merge_at(static_cast<std::uint32_t>(due));
    std::size_t size = 0;
    for (std::uint32_t i = 0; i != end; i = nodes_[i].next) run[size++] = nodes_[i].symbol;
    run.resize(size);
  }

  // Orders by rank, then from left to right.
  static std::uint64_t key(std::uint32_t rank, std::uint32_t left) {
    return std::uint64_t{rank} << 32 | left;
  }
  void merge_at(std::uint32_t left) {
    Node& node = nodes_[left];
    const std::uint32_t right = node.next;
    node.symbol = table_.find(node.symbol, nodes_[right].symbol).piece;
    node.next = nodes_[right].next;
    nodes_[right].rank = Merge::never;
    if (node.next != end) nodes_[node.next].previous = left;
    if (node.previous != end) offer(node.previous);
    offer(left);
  }
  void offer(std::uint32_t left) {
    Node& node = nodes_[left];
    node.rank = Merge::never;
    if (node.next == end) return;
    node.rank = table_.find(node.symbol, nodes_[node.next].symbol).rank;
    if (node.rank == Merge::never) return;
    queue_.push(key(node.rank, left));
  }

  struct Node {
    Symbol symbol;
    std::uint32_t previous, next;
    std::uint32_t rank;  // of its merge with the next node
  };
  const MergeTable& table_;
  std::vector<Node> nodes_;
  MergeQueue queue_;
};

}  // namespace tenon::inline TENON_ABI
