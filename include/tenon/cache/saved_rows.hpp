#pragma once
// The rows of one slot of a sequence as bytes, and back, whatever the layout of the cache. Rows are
// written as they lie, in their element format, plane after plane.
#include <algorithm>
#include <cstring>

#include "../core/memory.hpp"
#include "row_cache.hpp"

namespace tenon::inline TENON_ABI {

// A cache that forgets rows: see Ring for what each answers.
template <class C>
concept ForgetfulCache = RowCache<C> &&
    requires(C c, const C k, SeqId seq, int slot, int rows, int& oldest) {
  { k.oldest_kept(seq, slot, rows) } -> std::same_as<int>;
  { k.oldest_needed(slot, rows) } -> std::same_as<int>;
  { c.adopt(seq, slot, rows, oldest) } -> std::same_as<bool>;
};

// Which of a sequence's `rows` rows there are: the first `first` ones, and those from `oldest` on.
struct SavedRange {
  int first = 0, oldest = 0, rows = 0;
  // Where the second part starts: not within the first.
  int second() const { return (std::min)(rows, (std::max)(first, oldest)); }
  int count() const { return (std::min)(first, rows) + rows - second(); }
};

// What saving a slot of a sequence with `rows` rows takes: all, or what a forgetful cache still has
// and may yet need.
template <RowCache C>
SavedRange rows_to_save(const C& cache, SeqId seq, int slot, const RowSpec& spec, int rows) {
  SavedRange range{(std::min)(spec.first, rows), 0, rows};
  if constexpr (ForgetfulCache<C>) range.oldest = cache.oldest_kept(seq, slot, rows);
  return range;
}

// Bytes of these rows.
template <RowCache C>
std::size_t saved_bytes(const C& cache, int slot, const SavedRange& range) {
  return checked_multiply(cache.row_stride(slot, 0) + cache.row_stride(slot, 1),
                          static_cast<std::size_t>(range.count()));
}

namespace detail {
// Calls fn(plane, row, run) for runs of rows [low, high) that lie one after another, by plane.
template <class C, class Fn>
void each_run(const C& cache, int plane, int low, int high, Fn&& fn) {
  for (int row = low; row < high;) {
    const int run = (std::min)(cache.contiguous_from(row), high - row);
    fn(plane, row, run);
    row += run;
  }
}
}  // namespace detail

// Writes saved_bytes() bytes to `to`.
template <RowCache C>
void save_rows(const C& cache, SeqId seq, int slot, const SavedRange& range, std::byte* to) {
  const auto copy = [&](int plane, int row, int run) {
    const std::size_t n = cache.row_stride(slot, plane) * static_cast<std::size_t>(run);
    std::memcpy(to, cache.row(seq, slot, plane, row), n);
    to += n;
  };
  for (int plane = 0; plane < 2; ++plane) {
    if (cache.row_stride(slot, plane) == 0) continue;
    detail::each_run(cache, plane, 0, (std::min)(range.first, range.rows), copy);
    detail::each_run(cache, plane, range.second(), range.rows, copy);
  }
}

// Are these rows all that this cache must have of them? Of a bounded mask a forgetful cache needs
// what the next query sees, any other cache every row, since it promises to go back to any.
template <RowCache C>
bool suffices(const C& cache, int slot, const RowSpec& spec, const SavedRange& range) {
  static_cast<void>(cache);
  if (range.first < (std::min)(spec.first, range.rows)) return false;
  if constexpr (ForgetfulCache<C>) {
    return range.second() <= (std::max)(range.first, cache.oldest_needed(slot, range.rows));
  } else {
    return range.second() <= range.first;
  }
}

// Makes room for `rows` rows in an empty sequence, of which a forgetful cache puts those of the
// slot from `oldest` on; `oldest` becomes the first that it wants. False when there is no room. A
// cache that forgets nothing reserves for all its slots at once: ask it once, with slot 0.
template <RowCache C>
bool make_room(C& cache, SeqId seq, int slot, int rows, int& oldest) {
  if constexpr (ForgetfulCache<C>) {
    return cache.adopt(seq, slot, rows, oldest);
  } else {
    return slot > 0 || cache.reserve(seq, 0, rows);
  }
}

// Reads what save_rows() wrote into a sequence that has room. Rows below `wanted`, which a
// forgetful cache has no place for, are passed over.
template <RowCache C>
void load_rows(C& cache, SeqId seq, int slot, const SavedRange& range, int wanted,
               const std::byte* from) {
  const auto copy = [&](int plane, int row, int run) {
    const std::size_t n = cache.row_stride(slot, plane) * static_cast<std::size_t>(run);
    std::memcpy(cache.row(seq, slot, plane, row), from, n);
    from += n;
  };
  for (int plane = 0; plane < 2; ++plane) {
    const std::size_t stride = cache.row_stride(slot, plane);
    if (stride == 0) continue;
    detail::each_run(cache, plane, 0, (std::min)(range.first, range.rows), copy);
    const int low = (std::min)(range.rows, (std::max)(range.second(), wanted));
    from += stride * static_cast<std::size_t>(low - range.second());
    detail::each_run(cache, plane, low, range.rows, copy);
  }
}

}  // namespace tenon::inline TENON_ABI
