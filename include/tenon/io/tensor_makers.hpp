#pragma once
// Tensors made of others while they are read: rows in another order, several in one, numbers in
// another format. Nothing here keeps bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "../core/stored_bytes.hpp"
#include "../core/types.hpp"
#include "../quant/format.hpp"

namespace tenon::inline TENON_ABI {

// What a tensor is made of, and whom to tell which of its bytes were read
// (TensorSource::done_with).
struct MakerInput {
  StoredBytes bytes;
  std::function<void(std::span<const std::byte>)> done_with = {};

  void done(std::size_t first, std::size_t count) const noexcept;
};

// A function that may be called for bytes [first, first + size) in pieces of whole `unit`s:
// convert(unit, count, to) writes `count` units, at most `most`, of `bytes` bytes each.
template <class Convert>
void make_units(std::size_t first, std::span<std::byte> to, std::size_t bytes, std::size_t most,
                std::byte* scratch, Convert&& convert) noexcept {
  while (!to.empty()) {
    const std::size_t unit = first / bytes, skip = first % bytes;
    std::size_t some = 0;
    if (skip == 0 && to.size() >= bytes) {
      const std::size_t units = (std::min)(most, to.size() / bytes);
      convert(unit, units, to.data());
      some = units * bytes;
    } else {  // a part of one
      convert(unit, std::size_t{1}, scratch);
      some = (std::min)(bytes - skip, to.size());
      std::copy_n(scratch + skip, some, to.data());
    }
    first += some;
    to = to.subspan(some);
  }
}

// How the values of a head that turn as pairs lie: pair i at 2i and 2i + 1, or at i and i + half.
enum class PairOrder { interleaved_of_halves, halves_of_interleaved };

// The rows of heads of `head_dim` rows each, `row` bytes a row, so that pairs lie in another order.
class ReorderedPairs final : public ByteMaker {
 public:
  ReorderedPairs(MakerInput from, Dim head_dim, std::size_t row, PairOrder order)
      : from_(std::move(from)),
        head_(static_cast<std::size_t>(head_dim)),
        row_(row),
        order_(order) {}
  void make(std::size_t first, std::span<std::byte> to) const noexcept override;
  void done(std::size_t first, std::size_t count) const noexcept override;

 private:
  MakerInput from_;
  std::size_t head_, row_;
  PairOrder order_;
};

// Tensors of equal size, one after the other.
class Joined final : public ByteMaker {
 public:
  explicit Joined(std::vector<MakerInput> parts)
      : parts_(std::move(parts)), each_(parts_.front().bytes.size()) {}
  void make(std::size_t first, std::span<std::byte> to) const noexcept override;
  void done(std::size_t first, std::size_t count) const noexcept override;

 private:
  std::vector<MakerInput> parts_;
  std::size_t each_;
};

// Every `stride`th unit of `unit` bytes, from unit `first` on.
class Strided final : public ByteMaker {
 public:
  Strided(MakerInput from, std::size_t unit, std::size_t first, std::size_t stride)
      : from_(std::move(from)), unit_(unit), first_(first), stride_(stride) {}
  void make(std::size_t first, std::span<std::byte> to) const noexcept override;
  // What lies between is needed by others of that stride, of which the last is taken to be last.
  void done(std::size_t first, std::size_t count) const noexcept override;

 private:
  MakerInput from_;
  std::size_t unit_, first_, stride_;
};

// Blocks of MXFP4 as ggml has them, of scales and of 16 bytes that hold neighbours in their
// nibbles.
class Mxfp4Blocks final : public ByteMaker {
 public:
  Mxfp4Blocks(MakerInput nibbles, MakerInput scales)
      : nibbles_(std::move(nibbles)), scales_(std::move(scales)) {}
  void make(std::size_t first, std::span<std::byte> to) const noexcept override;
  void done(std::size_t first, std::size_t count) const noexcept override;

 private:
  static constexpr std::size_t block_bytes = 17;
  void convert(std::size_t block, std::byte* to) const noexcept;
  MakerInput nibbles_, scales_;
};

// Numbers without blocks in another format, with a factor for each block of them, or plus a number.
class Converted final : public ByteMaker {
 public:
  using Codec = void (*)(const std::byte*, Dim, float*);
  using Encode = void (*)(const float*, Dim, std::byte*);
  struct Step {
    Codec decode;
    std::size_t from_bytes;  // of one number
    Encode encode;
    std::size_t to_bytes;
    float add = 0;
    // Factors [ceil(rows / block_rows), ceil(columns / block_columns)], none or all of [rows,
    // columns].
    std::vector<float> scales = {};
    Dim columns = 1, block_rows = 1, block_columns = 1;
  };
  Converted(MakerInput from, Step step) : from_(std::move(from)), step_(std::move(step)) {}
  void make(std::size_t first, std::span<std::byte> to) const noexcept override;
  void done(std::size_t first, std::size_t count) const noexcept override;

 private:
  // Numbers [first, first + count), at most `most`, in their new format.
  void convert(Dim first, Dim count, std::byte* to) const noexcept;
  static constexpr Dim most = 512;

  MakerInput from_;
  Step step_;
};

// Blocks of a format as f32.
template <Format F>
class Decoded final : public ByteMaker {
 public:
  explicit Decoded(MakerInput from) : from_(std::move(from)) {}
  void make(std::size_t first, std::span<std::byte> to) const noexcept override {
    std::byte one[block];
    make_units(first, to, block, 1, one, [&](std::size_t unit, std::size_t, std::byte* at) {
      std::byte stored[F::block_bytes];
      float values[F::block];
      const auto from = from_.bytes.read(unit * F::block_bytes, stored);
      F::decode(from.data(), F::block, values);
      std::memcpy(at, values, block);
    });
  }
  void done(std::size_t first, std::size_t count) const noexcept override {
    const std::size_t from = first / block, to = (first + count) / block;
    if (from < to) from_.done(from * F::block_bytes, (to - from) * F::block_bytes);
  }

 private:
  static constexpr std::size_t block = static_cast<std::size_t>(F::block) * 4;
  MakerInput from_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "tensor_makers.inl"
#endif
