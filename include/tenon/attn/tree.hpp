#pragma once
// Token trees: several continuations of a prefix in one step (arXiv 2305.09781). A node sees what
// its mask lets it see of the prefix and of its own ancestors, and nothing of its siblings.
#include "../core/config.hpp"
#include "mask.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
// M for the rows of one sequence whose new tokens form a tree. Where M counts distances, a node
// stands at the row it would have if its path were the only one.
template <Mask M>
struct TreeRows {
  static constexpr bool bounded = M::bounded, looks_ahead = false;
  M mask;
  const SeqStep* seq = nullptr;

  constexpr int first_rows() const { return tenon::first_rows(mask); }
  constexpr Rows reach(Rows queries, int cached) const {
    if (chain()) return mask.reach(queries, cached);
    return {mask.reach({seq->base, seq->base + 1}, cached).low, queries.high};
  }
  constexpr Coverage classify(Rows queries, Rows keys) const {
    if (chain()) return mask.classify(queries, keys);
    if (keys.low >= queries.high) return Coverage::skip;
    if (keys.high > seq->base) return Coverage::partial;
    const Coverage prefix = mask.classify({seq->base, seq->base + seq->count}, keys);
    return prefix == Coverage::full ? Coverage::full : Coverage::partial;
  }
  constexpr bool keep(int query, int key) const {
    if (chain()) return mask.keep(query, key);
    const int node = query - seq->base;
    if (key < seq->base) return mask.keep(seq->base + seq->depths[node], key);
    const int other = key - seq->base;
    const std::uint64_t* row = seq->ancestors + node * ((seq->count + 63) / 64);
    return other < seq->count && (row[other / 64] >> (other % 64) & 1) != 0 &&
           mask.keep(seq->base + seq->depths[node], seq->base + seq->depths[other]);
  }
  constexpr std::uint64_t keep_bits(int query, int first) const {
    if (chain()) return tenon::keep_bits(mask, query, first);
    std::uint64_t bits = 0;
    for (int i = 0; i < 64; ++i) {
      if (keep(query, first + i)) bits |= std::uint64_t{1} << i;
    }
    return bits;
  }
  constexpr int rows_back() const requires M::bounded { return mask.rows_back(); }

 private:
  constexpr bool chain() const { return seq->ancestors == nullptr; }
};
}  // namespace detail

// M until a batch brings `parents`; then M along each path of the tree.
template <Mask M>
struct Tree {
  static_assert(!M::looks_ahead, "tenon: Tree takes a mask that does not look ahead");
  static constexpr bool bounded = M::bounded, looks_ahead = false, trees = true;
  M mask;

  static constexpr bool fits(const ModelConfig& config, int layer) {
    return policy_fits<M>(config, layer);
  }
  static constexpr Tree read(const ModelConfig& config, int layer) {
    return {read_policy<M>(config, layer)};
  }
  constexpr auto in(const SeqStep& seq) const { return detail::TreeRows<M>{mask, &seq}; }
  constexpr int first_rows() const { return tenon::first_rows(mask); }
  constexpr Rows reach(Rows queries, int cached) const { return mask.reach(queries, cached); }
  constexpr Coverage classify(Rows queries, Rows keys) const {
    return mask.classify(queries, keys);
  }
  constexpr bool keep(int query, int key) const { return mask.keep(query, key); }
  constexpr int rows_back() const requires M::bounded { return mask.rows_back(); }
};

}  // namespace tenon::inline TENON_ABI
