#pragma once
#include <algorithm>

#include "tensor_makers.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void MakerInput::done(std::size_t first, std::size_t count) const noexcept {
  if (bytes.made()) {
    bytes.done(first, count);
  } else if (done_with) {
    done_with(std::span<const std::byte>(bytes).subspan(first, count));
  }
}

TENON_INLINE void ReorderedPairs::make(std::size_t first, std::span<std::byte> to) const noexcept {
  while (!to.empty()) {
    const std::size_t row = first / row_, skip = first % row_;
    const std::size_t in_head = row % head_, half = head_ / 2;
    const std::size_t from = order_ == PairOrder::interleaved_of_halves
                                 ? in_head % 2 * half + in_head / 2
                                 : in_head % half * 2 + in_head / half;
    const std::size_t some = (std::min)(row_ - skip, to.size());
    from_.bytes.copy((row - in_head + from) * row_ + skip, to.first(some));
    first += some;
    to = to.subspan(some);
  }
}

TENON_INLINE void ReorderedPairs::done(std::size_t first, std::size_t count) const noexcept {
  // A head's rows are needed until its last one is made.
  const std::size_t head = head_ * row_;
  const std::size_t from = first / head * head, to = (first + count) / head * head;
  if (from < to) from_.done(from, to - from);
}

TENON_INLINE void Joined::make(std::size_t first, std::span<std::byte> to) const noexcept {
  while (!to.empty()) {
    const std::size_t at = first % each_;
    const std::size_t some = (std::min)(each_ - at, to.size());
    parts_[first / each_].bytes.copy(at, to.first(some));
    first += some;
    to = to.subspan(some);
  }
}

TENON_INLINE void Joined::done(std::size_t first, std::size_t count) const noexcept {
  while (count > 0) {
    const std::size_t at = first % each_, some = (std::min)(each_ - at, count);
    parts_[first / each_].done(at, some);
    first += some;
    count -= some;
  }
}

TENON_INLINE void Strided::make(std::size_t first, std::span<std::byte> to) const noexcept {
  while (!to.empty()) {
    const std::size_t unit = first / unit_, skip = first % unit_;
    const std::size_t some = (std::min)(unit_ - skip, to.size());
    from_.bytes.copy((unit * stride_ + first_) * unit_ + skip, to.first(some));
    first += some;
    to = to.subspan(some);
  }
}

TENON_INLINE void Strided::done(std::size_t first, std::size_t count) const noexcept {
  const std::size_t from = first / unit_, to = (first + count) / unit_, step = stride_ * unit_;
  if (first_ + 1 == stride_ && from < to) from_.done(from * step, (to - from) * step);
}

TENON_INLINE void Mxfp4Blocks::convert(std::size_t block, std::byte* to) const noexcept {
  std::byte pairs[16];
  scales_.bytes.copy(block, {to, 1});
  nibbles_.bytes.copy(block * 16, pairs);
  const auto value = [&](std::size_t i) {  // 2j in the low nibble of byte j, 2j + 1 in the high one
    return i % 2 == 0 ? pairs[i / 2] & std::byte{15} : pairs[i / 2] >> 4;
  };
  for (std::size_t i = 0; i < 16; ++i) to[1 + i] = value(i) | value(i + 16) << 4;
}

TENON_INLINE void Mxfp4Blocks::make(std::size_t first, std::span<std::byte> to) const noexcept {
  std::byte one[block_bytes];
  make_units(first, to, block_bytes, 1, one,
             [&](std::size_t unit, std::size_t, std::byte* at) { convert(unit, at); });
}

TENON_INLINE void Mxfp4Blocks::done(std::size_t first, std::size_t count) const noexcept {
  const std::size_t from = first / block_bytes, to = (first + count) / block_bytes;
  if (from >= to) return;
  nibbles_.done(from * 16, (to - from) * 16);
  scales_.done(from, to - from);
}

TENON_INLINE void Converted::convert(Dim first, Dim count, std::byte* to) const noexcept {
  constexpr std::size_t widest = 8;
  std::byte stored[static_cast<std::size_t>(most) * widest];
  float values[most];
  const std::size_t size = static_cast<std::size_t>(count) * step_.from_bytes;
  const auto from =
      from_.bytes.read(static_cast<std::size_t>(first) * step_.from_bytes, {stored, size});
  step_.decode(from.data(), count, values);
  if (!step_.scales.empty()) {
    const Dim across = ceil_div(step_.columns, step_.block_columns);
    for (Dim i = 0; i < count; ++i) {
      const Dim row = (first + i) / step_.columns, column = (first + i) % step_.columns;
      values[i] *= step_.scales[static_cast<std::size_t>(row / step_.block_rows * across +
                                                         column / step_.block_columns)];
    }
  }
  if (step_.add != 0) {
    for (Dim i = 0; i < count; ++i) values[i] += step_.add;
  }
  step_.encode(values, count, to);
}

TENON_INLINE void Converted::make(std::size_t first, std::span<std::byte> to) const noexcept {
  std::byte one[16];
  make_units(first, to, step_.to_bytes, static_cast<std::size_t>(most), one,
             [&](std::size_t unit, std::size_t count, std::byte* at) {
               convert(static_cast<Dim>(unit), static_cast<Dim>(count), at);
             });
}

TENON_INLINE void Converted::done(std::size_t first, std::size_t count) const noexcept {
  const std::size_t from = first / step_.to_bytes, to = (first + count) / step_.to_bytes;
  if (from < to) from_.done(from * step_.from_bytes, (to - from) * step_.from_bytes);
}

}  // namespace tenon::inline TENON_ABI
