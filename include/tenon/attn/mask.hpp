#pragma once
// Which keys a query may see. A mask is a value: a window is a run-time number, not a type.
#include <algorithm>
#include <concepts>
#include <cstdint>

#include "../core/batch.hpp"
#include "../core/config.hpp"

namespace tenon::inline TENON_ABI {

// A half-open range of cache rows.
struct Rows {
  int low = 0, high = 0;
};
enum class Coverage { skip, full, partial };

// reach:    the rows that any query of the range may see when `cached` rows exist.
// classify: how a range of queries sees a range of keys; `partial` is always a safe answer.
// keep:     the exact answer for one pair; asked only where classify said partial.
// bounded:  reach goes back a limited number of rows, rows_back(), so a ring can serve it.
// looks_ahead: a query may see later keys, so the sequence cannot be fed in chunks.
template <class M>
concept Mask = std::default_initializable<M> && requires(const M m, Rows r, int i) {
  { m.reach(r, i) } -> std::same_as<Rows>;
  { m.classify(r, r) } -> std::same_as<Coverage>;
  { m.keep(i, i) } -> std::same_as<bool>;
  { M::bounded } -> std::convertible_to<bool>;
  { M::looks_ahead } -> std::convertible_to<bool>;
};

template <class M>
consteval bool explain_mask() {
  static_assert(
      requires(const M m, Rows q, int n) {
        { m.reach(q, n) } -> std::same_as<Rows>;
      },
      "tenon: a Mask must provide `Rows reach(Rows queries, int cached) const`, the rows its "
      "queries may see");
  static_assert(
      requires(const M m, Rows q, Rows k) {
        { m.classify(q, k) } -> std::same_as<Coverage>;
      },
      "tenon: a Mask must provide `Coverage classify(Rows queries, Rows keys) const` (skip, full "
      "or partial)");
  static_assert(
      requires(const M m) {
        { m.keep(0, 0) } -> std::same_as<bool>;
      },
      "tenon: a Mask must provide `bool keep(int query, int key) const`, asked only where classify "
      "says partial");
  static_assert(
      requires {
        bool(M::bounded);
        bool(M::looks_ahead);
      },
      "tenon: a Mask must state `static constexpr bool bounded, looks_ahead`");
  return true;
}

// Bit i: key first + i is kept, for keys below first + 64.
template <Mask M>
std::uint64_t keep_bits(const M& mask, int query, int first) {
  if constexpr (requires { mask.keep_bits(query, first); }) {
    return mask.keep_bits(query, first);
  } else {
    std::uint64_t bits = 0;
    for (int i = 0; i < 64; ++i) {
      if (mask.keep(query, first + i)) bits |= std::uint64_t{1} << i;
    }
    return bits;
  }
}

// Bits [low, high) of 64, clamped.
constexpr std::uint64_t bit_range(int low, int high) {
  low = (std::max)(low, 0);
  high = (std::min)(high, 64);
  if (low >= high) return 0;
  const std::uint64_t below_high = high == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << high) - 1;
  return below_high & (~std::uint64_t{0} << low);
}

// Every token sees itself and what came before.
struct Causal {
  static constexpr bool bounded = false, looks_ahead = false;
  static constexpr Causal read(const ModelConfig& config, int) {
    if (!config.flag_or("attention.causal", true)) {
      fail<LoadError>(
          "metadata key \"", config.architecture,
          ".attention.causal\" must be true for this model type, it is false; compose the model "
          "with another mask");
    }
    return {};
  }
  constexpr Rows reach(Rows queries, int) const { return {0, queries.high}; }
  constexpr Coverage classify(Rows queries, Rows keys) const {
    if (keys.low >= queries.high) return Coverage::skip;
    return keys.high <= queries.low + 1 ? Coverage::full : Coverage::partial;
  }
  constexpr bool keep(int query, int key) const { return key <= query; }
  constexpr std::uint64_t keep_bits(int query, int first) const {
    return bit_range(0, query + 1 - first);
  }
};

}  // namespace tenon::inline TENON_ABI
