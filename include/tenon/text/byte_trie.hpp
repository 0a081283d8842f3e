#pragma once
// From texts to numbers, byte by byte: for the longest piece that a text starts with, and for
// finding a piece by its whole text.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

// Immutable. The children of a node lie side by side in the order of their bytes, so a step is a
// short search; a node takes 13 bytes and there are at most as many nodes as bytes of all texts.
class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node root = 0;
  static constexpr Node nowhere = 0xFFFFFFFF;
  static constexpr std::int32_t none = -1;
  using Entry = std::pair<std::string_view, std::int32_t>;

  ByteTrie() : ByteTrie(std::vector<Entry>()) {}
  // Values are >= 0. Of equal texts the one with the higher value counts; empty texts are ignored.
  explicit ByteTrie(std::vector<Entry> entries) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    // Breadth first: `level` holds, for each node, the entries below it.
    struct Below {
      std::size_t begin, end, depth;
    };
    std::vector<Below> level = {{0, entries.size(), 0}};
    nodes_.push_back({});
    bytes_.push_back(0);
    for (std::size_t node = 0; node < level.size(); ++node) {
      Below below = level[node];
      while (below.begin < below.end && entries[below.begin].first.size() == below.depth) {
        if (below.depth > 0 && nodes_[node].value == none)
          nodes_[node].value = entries[below.begin].second;
        ++below.begin;
      }
      nodes_[node].first = static_cast<Node>(nodes_.size());
      for (std::size_t i = below.begin; i < below.end;) {
        const char byte = entries[i].first[below.depth];
        std::size_t j = i;
        while (j < below.end && entries[j].first[below.depth] == byte) ++j;
        if (nodes_.size() >= most_nodes) {
          fail<LoadError>("the pieces of a vocabulary must have at most ", most_nodes,
                          " different beginnings, these have more; the file is damaged or hostile");
        }
        level.push_back({i, j, below.depth + 1});
        nodes_.push_back({});
        bytes_.push_back(static_cast<unsigned char>(byte));
        i = j;
      }
      nodes_[node].count = static_cast<std::uint16_t>(nodes_.size() - nodes_[node].first);
    }
    from_root_.fill(nowhere);
    for (Node i = 0; i < nodes_[root].count; ++i) {
      from_root_[bytes_[nodes_[root].first + i]] = nodes_[root].first + i;
    }
  }

  // The node one byte further, or nowhere.
  Node step(Node node, unsigned char byte) const {
    if (node == root) return from_root_[byte];
    const Links& links = nodes_[node];
    const auto begin = bytes_.begin() + links.first;
    const auto end = begin + links.count;
    const auto at = std::lower_bound(begin, end, byte);
    return at == end || *at != byte ? nowhere : static_cast<Node>(at - bytes_.begin());
  }
  // The value of the text that ends at a node, or none.
  std::int32_t value(Node node) const { return nodes_[node].value; }
  // The bytes of the longest entry that a text starts with, 0 where there is none.
  std::size_t longest(std::string_view text) const {
    Node node = root;
    std::size_t size = 0;
    for (std::size_t i = 0; i < text.size();) {
      node = step(node, static_cast<unsigned char>(text[i++]));
      if (node == nowhere) break;
      if (value(node) != none) size = i;
    }
    return size;
  }
  // The value of a whole text, or none.
  std::int32_t find(std::string_view text) const {
    Node node = root;
    for (const char c : text) {
      node = step(node, static_cast<unsigned char>(c));
      if (node == nowhere) return none;
    }
    return value(node);
  }

 private:
  static constexpr std::size_t most_nodes = std::size_t{1} << 26;
  struct Links {
    Node first = 0;
    std::int32_t value = none;
    std::uint16_t count = 0;
  };
  std::vector<Links> nodes_;
  std::vector<unsigned char> bytes_;  // by node: the byte that leads to it
  std::array<Node, 256> from_root_{};
};

}  // namespace tenon::inline TENON_ABI
