#pragma once
#include "automaton.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void Automaton::add(std::string_view pattern, std::int32_t value) {
  if (pattern.empty()) return;
  State state = start;
  for (const char c : pattern) state = child_or_new(state, static_cast<unsigned char>(c));
  nodes_[state].value = value;
}

TENON_INLINE void Automaton::build() {
  order_.clear();
  order_.reserve(nodes_.size());
  order_.push_back(start);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const State parent = order_[i];
    for (State at = nodes_[parent].child; at != start; at = nodes_[at].sibling) {
      nodes_[at].fail = parent == start ? start : step(nodes_[parent].fail, nodes_[at].byte);
      order_.push_back(at);
    }
  }
}

TENON_INLINE Automaton::State Automaton::step(State state, unsigned char byte) const {
  while (true) {
    if (state == start) return root_[byte];
    for (State at = nodes_[state].child; at != start; at = nodes_[at].sibling) {
      if (nodes_[at].byte == byte) return at;
    }
    state = nodes_[state].fail;
  }
}

TENON_INLINE Automaton::State Automaton::child_or_new(State parent, unsigned char byte) {
  if (parent == start && root_[byte] != start) return root_[byte];
  for (State at = nodes_[parent].child; parent != start && at != start; at = nodes_[at].sibling) {
    if (nodes_[at].byte == byte) return at;
  }
  const auto at = static_cast<State>(nodes_.size());
  Node node;
  node.sibling = nodes_[parent].child;
  node.depth = nodes_[parent].depth + 1;
  node.byte = byte;
  nodes_.push_back(node);
  nodes_[parent].child = at;
  if (parent == start) root_[byte] = at;
  return at;
}

}  // namespace tenon::inline TENON_ABI
