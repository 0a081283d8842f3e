#pragma once
// Every way in which a piece is the concatenation of two others.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "merge_table.hpp"

namespace tenon::inline TENON_ABI {

// Texts with the symbols they stand for. The views must outlive the object.
class PieceSplits {
 public:
  struct Item {
    std::string_view text;  // not empty; no two items have the same text
    Symbol symbol = no_symbol;
  };

  // O(bytes log items): sorting puts a text right after the texts it starts with, so the longest
  // item that is a proper prefix (suffix) of each is found in one pass, without hashing.
  explicit PieceSplits(std::vector<Item> items) : items_(std::move(items)) {
    std::vector<std::uint32_t> order(items_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return items_[a].text < items_[b].text; });
    prefix_ = parents(order, [](std::string_view part, std::string_view whole) {
      return part.size() < whole.size() && whole.substr(0, part.size()) == part;
    });
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::string_view x = items_[a].text, y = items_[b].text;
      return std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend());
    });
    suffix_ = parents(order, [](std::string_view part, std::string_view whole) {
      return part.size() < whole.size() && whole.substr(whole.size() - part.size()) == part;
    });
  }

  // Calls f(item, left, right) for every split of an item into two items; f returns false to stop.
  template <class F>
  void for_each(F f) const {
    std::vector<std::uint32_t> suffixes;
    for (std::uint32_t i = 0; i < items_.size(); ++i) {
      suffixes.clear();
      for (std::uint32_t s = suffix_[i]; s != none; s = suffix_[s]) suffixes.push_back(s);
      const std::size_t size = items_[i].text.size();
      // Prefixes from long to short meet suffixes from short to long.
      for (std::uint32_t p = prefix_[i]; p != none && !suffixes.empty(); p = prefix_[p]) {
        const std::size_t rest = size - items_[p].text.size();
        while (!suffixes.empty() && items_[suffixes.back()].text.size() < rest) suffixes.pop_back();
        if (suffixes.empty() || items_[suffixes.back()].text.size() != rest) continue;
        if (!f(items_[i], items_[p], items_[suffixes.back()])) return;
      }
    }
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  template <class IsPart>
  std::vector<std::uint32_t> parents(const std::vector<std::uint32_t>& order,
                                     IsPart is_part) const {
    std::vector<std::uint32_t> parent(items_.size(), none), chain;
    for (const std::uint32_t i : order) {
      while (!chain.empty() && !is_part(items_[chain.back()].text, items_[i].text))
        chain.pop_back();
      if (!chain.empty()) parent[i] = chain.back();
      chain.push_back(i);
    }
    return parent;
  }

  std::vector<Item> items_;
  std::vector<std::uint32_t> prefix_, suffix_;  // the longest proper one, or none
};

}  // namespace tenon::inline TENON_ABI
