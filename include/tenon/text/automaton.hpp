#pragma once
// Finds many strings in one pass over a text (Aho and Corasick, 1975).
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// A state stands for the longest suffix of the text read so far that some pattern starts with.
// Reading n bytes takes O(n) steps whatever the patterns are; memory is about 28 bytes for each
// byte of the patterns.
class Automaton {
 public:
  using State = std::uint32_t;
  static constexpr State start = 0;
  static constexpr std::int32_t none = -1;

  // Adds a pattern under a value >= 0; the same pattern again replaces the value. An empty pattern
  // is ignored. build() must follow the last add().
  void add(std::string_view pattern, std::int32_t value);
  void build();
  bool empty() const { return nodes_.size() == 1; }

  State step(State state, unsigned char byte) const;
  // Bytes of the suffix that the state stands for.
  std::size_t depth(State state) const { return nodes_[state].depth; }

  // For each state, the value of the longest pattern that the text read so far ends with, or none;
  // only patterns whose value satisfies `counts` are looked at.
  template <class Counts>
  std::vector<std::int32_t> longest(Counts counts) const {
    std::vector<std::int32_t> values(nodes_.size(), none);
    for (const State state : order_) {
      if (state == start) continue;
      const std::int32_t own = nodes_[state].value;
      values[state] = own != none && counts(own) ? own : values[nodes_[state].fail];
    }
    return values;
  }

 private:
  struct Node {
    State child = start;    // first child; the root is nobody's child, so `start` ends a list
    State sibling = start;  // next child of the same parent
    State fail = start;
    std::uint32_t depth = 0;
    std::int32_t value = none;
    unsigned char byte = 0;
  };

  State child_or_new(State parent, unsigned char byte);

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<State> order_;          // breadth first, so that a state follows its suffixes
  std::array<State, 256> root_ = {};  // children of the root
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "automaton.inl"
#endif
