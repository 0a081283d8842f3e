#pragma once
// What a cache of rows is: the contract between mixers, which say what a row holds, and policies
// (contiguous, ring, paged), which decide where rows live.
#include <array>
#include <concepts>
#include <span>

#include "../core/memory.hpp"
#include "../core/types.hpp"
#include "../quant/any_of.hpp"

namespace tenon::inline TENON_ABI {

// One layer's rows. GQA stores two planes (keys, values), MLA one (latent and rotary key).
struct RowSpec {
  std::array<Dim, 2> widths{};  // values per row of each plane; 0: no such plane
  int reach = 0;                // rows that a bounded mask sees, the newest included; 0: all
  int first = 0;                // rows at the start that it sees besides (attention sinks)
};

// The element format of each plane, as an index into the cache's list.
using PlaneTags = std::array<int, 2>;

// What attention needs of a cache: rows of elements of the list `Formats`, to be read.
template <class C>
concept RowReader = requires(const C k, SeqId seq, int n) {
  typename C::Formats;
  { k.tags() } -> std::convertible_to<PlaneTags>;
  { k.row(seq, n, n, n) } -> std::same_as<const std::byte*>;  // (sequence, slot, plane, row)
  { k.contiguous_from(n) } -> std::same_as<int>;  // rows lying one after another from this one
  { k.row_stride(n, n) } -> std::same_as<std::size_t>;  // (slot, plane) bytes
};

// A store holds the rows of all sequences for all layers ("slots") that share its type. Its element
// formats are of the list `Formats`, named by tags when the store is made; keys and values may
// differ. One that can drop rows in the middle of a sequence says `static constexpr bool shifts =
// true` and has
//   bool unshare(SeqId, int from, int rows)   makes rows [from, rows) its own, to be written;
//                                             false, and nothing changed, when full
//   bool move_rows(SeqId, int from, int to, int count)   to <= from; true after unshare()
template <class C>
concept RowCache = requires(C c, const C k, std::span<const RowSpec> slots, const Limits& limits,
                            const PlaneTags& tags, SeqId seq, int n) {
  typename C::Formats;
  C(slots, limits, tags);
  // What it will hold, before it does.
  { C::bytes(slots, limits, tags) } -> std::same_as<std::size_t>;
  { k.tags() } -> std::convertible_to<PlaneTags>;
  // (sequence, rows, more): makes room for `more` rows after the `rows` that are kept; false, and
  // nothing changed, when there is none. Called once per step and sequence.
  { c.reserve(seq, n, n) } -> std::same_as<bool>;
  { k.recalls(seq, n) } -> std::same_as<bool>;  // (sequence, rows): can it go back to that many?
  { c.row(seq, n, n, n) } -> std::same_as<std::byte*>;  // (sequence, slot, plane, row)
  { k.row(seq, n, n, n) } -> std::same_as<const std::byte*>;
  { k.contiguous_from(n) } -> std::same_as<int>;  // rows lying one after another from this one
  { k.row_stride(n, n) } -> std::same_as<std::size_t>;  // (slot, plane) bytes
  { C::forks } -> std::convertible_to<bool>;            // is fork() supported?
  c.truncate(seq, n, n);                                // (sequence, rows, rows to keep)
  c.release(seq);
};

template <class C>
consteval bool explain_row_cache() {
  static_assert(
      requires { typename C::Formats; },
      "tenon: a row cache must name its element formats, `using Formats = AnyOf<F16, F32>`");
  static_assert(
      requires(std::span<const RowSpec> slots, const Limits& limits, const PlaneTags& tags) {
        C(slots, limits, tags);
        { C::bytes(slots, limits, tags) } -> std::same_as<std::size_t>;
      },
      "tenon: a row cache must be constructible from (span<const RowSpec>, Limits, PlaneTags) and "
      "state `static std::size_t bytes(...)` for the same arguments");
  static_assert(
      requires(C c, SeqId seq, int n) {
        { c.row(seq, n, n, n) } -> std::same_as<std::byte*>;
      },
      "tenon: a row cache must provide `std::byte* row(SeqId, int slot, int plane, int row)`");
  static_assert(
      requires(const C c, int n) {
        { c.contiguous_from(n) } -> std::same_as<int>;
        { c.row_stride(n, n) } -> std::same_as<std::size_t>;
      },
      "tenon: a row cache must provide `int contiguous_from(int row) const` and "
      "`std::size_t row_stride(int slot, int plane) const`");
  static_assert(
      requires(C c, SeqId seq, int n) {
        { c.reserve(seq, n, n) } -> std::same_as<bool>;
        { c.recalls(seq, n) } -> std::same_as<bool>;
        { C::forks } -> std::convertible_to<bool>;
        c.truncate(seq, n, n);
        c.release(seq);
      },
      "tenon: a row cache must provide reserve, recalls, forks, truncate and release (see "
      "RowCache)");
  if constexpr (requires { requires C::forks; }) {
    static_assert(
        requires(C c, SeqId seq, int n) { c.fork(seq, seq, n); },
        "tenon: a row cache whose `forks` is true must provide `void fork(SeqId from, SeqId to, "
        "int rows)`, which gives `to`, an empty sequence, the first `rows` rows of `from`");
  }
  return true;
}

// Rows of pinned width in a cache of one format; at run time a last partial block is filled up.
template <class C, Dim Width>
consteval bool explain_row_width() {
  if constexpr (Width > 0 && requires { C::Formats::block; }) {
    static_assert(Width % C::Formats::block == 0,
                  "tenon: the values of a cached row must fill whole blocks of the cache's format; "
                  "choose a format with a smaller block, or one that has none");
  }
  return true;
}

// Bytes of one row of a plane in the format with this tag.
template <class Formats>
std::size_t plane_row_bytes(Dim width, int tag) {
  return FormatList<Formats>::visit(tag, [&]<class F>(F) {
    return checked_multiply(static_cast<std::size_t>(ceil_div(width, F::block)), F::block_bytes);
  });
}

}  // namespace tenon::inline TENON_ABI
