#pragma once
// What a cache of rows is: the contract between mixers, which say what a row holds, and policies
// (contiguous, ring, paged), which decide where rows live.
#include <array>
#include <concepts>
#include <span>

#include "../core/types.hpp"
#include "../quant/any_of.hpp"

namespace tenon::inline TENON_ABI {

// One layer's rows. GQA stores two planes (keys, values), MLA one (latent and rotary key).
struct RowSpec {
  std::array<Dim, 2> widths{};  // values per row of each plane; 0: no such plane
  int reach = 0;                // how many rows back a bounded mask looks; 0: all
};

// A store holds the rows of all sequences for all layers ("slots") that share its type. Its element
// format is one of `Formats`, named by a tag when the store is made.
template <class C>
concept RowCache = requires(C c, const C k, std::span<const RowSpec> slots, const Limits& limits,
                            SeqId seq, int n) {
  typename C::Formats;
  C(slots, limits, n);
  { C::bytes(slots, limits, n) } -> std::same_as<std::size_t>;  // what it will hold, before it does
  { k.tag() } -> std::same_as<int>;
  { k.fits(seq, n, n) } -> std::same_as<bool>;  // (sequence, rows, more): is there room for more?
  c.reserve(seq, n, n);                         // makes that room; called once per step
  { c.row(seq, n, n, n) } -> std::same_as<std::byte*>;  // (sequence, slot, plane, row)
  { k.row(seq, n, n, n) } -> std::same_as<const std::byte*>;
  { k.contiguous_from(n) } -> std::same_as<int>;  // rows lying one after another from this one
  { k.row_stride(n, n) } -> std::same_as<std::size_t>;  // (slot, plane) bytes
  c.fork(seq, seq, n);                                  // (from, to, rows)
  c.truncate(seq, n, n);                                // (sequence, rows, rows to keep)
  c.release(seq);
};

template <class C>
consteval bool explain_row_cache() {
  static_assert(
      requires { typename C::Formats; },
      "tenon: a row cache must name its element formats, `using Formats = AnyOf<F16, F32>`");
  static_assert(
      requires(std::span<const RowSpec> slots, const Limits& limits, int tag) {
        C(slots, limits, tag);
        { C::bytes(slots, limits, tag) } -> std::same_as<std::size_t>;
      },
      "tenon: a row cache must be constructible from (span<const RowSpec>, Limits, int tag) and "
      "state "
      "`static std::size_t bytes(...)` for the same arguments");
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
        { c.fits(seq, n, n) } -> std::same_as<bool>;
        c.reserve(seq, n, n);
        c.fork(seq, seq, n);
        c.truncate(seq, n, n);
        c.release(seq);
      },
      "tenon: a row cache must provide fits, reserve, fork, truncate and release (see RowCache)");
  return true;
}

// Bytes of one row of a plane in the format with this tag.
template <class Formats>
std::size_t plane_row_bytes(Dim width, int tag) {
  return FormatList<Formats>::visit(tag, [&]<class F>(F) { return row_bytes<F>(width); });
}

}  // namespace tenon::inline TENON_ABI
