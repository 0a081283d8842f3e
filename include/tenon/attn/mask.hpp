#pragma once
// What a mask is: which keys a query may see. A mask is a value, because a window is a run-time
// number and not a type. The masks themselves are in masks.hpp and tree.hpp.
#include <algorithm>
#include <concepts>
#include <cstdint>

#include "../core/batch.hpp"

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
// looks_ahead: a query may see later keys; complete(base, count) then says whether rows
//   [base, base + count) may be computed in one step without the rows that follow.
// Optional:
//   int first_rows() const           rows at the start that every query sees besides its reach
//   auto in(const SeqStep&) const    the mask to use for one sequence of a step
//   uint64 keep_bits(query, first)   keep() of 64 keys at once
//   static M read(config, layer)     its numbers, and static bool fits(config, layer): whether the
//                                    checkpoint asks for this mask
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
  if constexpr (requires { requires M::bounded; }) {
    static_assert(
        requires(const M m) {
          { m.rows_back() } -> std::same_as<int>;
        },
        "tenon: a bounded Mask must provide `int rows_back() const`, how many rows a query sees at "
        "most, itself included");
  }
  if constexpr (requires { requires M::looks_ahead; }) {
    static_assert(
        requires(const M m) {
          { m.complete(0, 0) } -> std::same_as<bool>;
        },
        "tenon: a Mask that looks ahead must provide `bool complete(int base, int count) const`, "
        "whether those rows may be computed without the rows that follow");
  }
  return true;
}

// A cache of windows (`static constexpr bool for_windows = true`) holds what a bounded mask sees.
template <class M, class C>
consteval bool explain_mask_of_cache() {
  if constexpr (requires { requires C::for_windows; }) {
    static_assert(M::bounded,
                  "tenon: a Ring keeps the rows that a bounded mask sees; use Contiguous or Paged "
                  "for a mask that sees all");
  }
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

// Rows at the start that are seen besides the reach (attention sinks).
template <Mask M>
constexpr int first_rows(const M& mask) {
  if constexpr (requires { mask.first_rows(); }) {
    return mask.first_rows();
  } else {
    return 0;
  }
}

// The mask of one sequence's part of a step.
template <Mask M>
constexpr auto mask_in(const M& mask, const SeqStep& seq) {
  if constexpr (requires { mask.in(seq); }) {
    return mask.in(seq);
  } else {
    static_cast<void>(seq);
    return mask;
  }
}

}  // namespace tenon::inline TENON_ABI
