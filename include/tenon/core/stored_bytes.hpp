#pragma once
// The bytes of a tensor: they lie in memory, or are made piece by piece when somebody reads them.
#include <concepts>
#include <cstddef>
#include <mutex>
#include <span>
#include <type_traits>

#include "memory.hpp"

namespace tenon::inline TENON_ABI {

// Makes bytes that are stored nowhere as they are to be read: rows in another order, another
// format.
class ByteMaker {
 public:
  ByteMaker() = default;
  ByteMaker(const ByteMaker&) = delete;
  ByteMaker& operator=(const ByteMaker&) = delete;
  virtual ~ByteMaker() = default;
  // Writes bytes [first, first + to.size()), which lie within those there are. It allocates
  // nothing; any number of threads may call it at once.
  virtual void make(std::size_t first, std::span<std::byte> to) const noexcept = 0;
  // Whoever made bytes [first, first + count) will not soon again: what they were made of need not
  // stay in memory.
  virtual void done(std::size_t first, std::size_t count) const noexcept {
    static_cast<void>(first);
    static_cast<void>(count);
  }
  // All `size` bytes, made by the first call and kept as long as this object. CapacityError when
  // they do not fit into memory.
  const std::byte* all(std::size_t size) const {
    const std::lock_guard lock(mutex_);
    if (whole_.size() < size) {
      AlignedBuffer made(size);
      make(0, {made.data(), size});
      whole_ = std::move(made);
    }
    return whole_.data();
  }

 private:
  mutable std::mutex mutex_;
  mutable AlignedBuffer whole_;
};

// A view of bytes with a known number. data() and what is built on it make all of a maker's bytes
// and keep them; read() makes a part and keeps nothing, so whatever reads large tensors uses it.
class StoredBytes {
 public:
  StoredBytes() = default;
  template <class Bytes>
  requires(!std::same_as<std::remove_cvref_t<Bytes>, StoredBytes> &&
           std::convertible_to<Bytes, std::span<const std::byte>>) StoredBytes(const Bytes& bytes) {
    const std::span<const std::byte> view(bytes);
    data_ = view.data();
    size_ = view.size();
  }
  // The `size` bytes of a maker, which must outlive this.
  StoredBytes(const ByteMaker& maker, std::size_t size)
      : maker_(&maker), total_(size), size_(size) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Whether they lie nowhere yet.
  bool made() const { return maker_ != nullptr; }

  // Bytes [first, first + to.size()): where they lie, or made in `to`.
  std::span<const std::byte> read(std::size_t first, std::span<std::byte> to) const {
    if (maker_ == nullptr) return {data_ + first, to.size()};
    maker_->make(first_ + first, to);
    return to;
  }
  // See ByteMaker; does nothing for bytes that lie in memory, whose owner is told.
  void done(std::size_t first, std::size_t count) const {
    if (maker_ != nullptr) maker_->done(first_ + first, count);
  }
  // Bytes [first, first + to.size()) in `to`, wherever they come from.
  void copy(std::size_t first, std::span<std::byte> to) const {
    const auto from = read(first, to);
    if (from.data() != to.data()) std::copy(from.begin(), from.end(), to.begin());
  }

  const std::byte* data() const {
    if (maker_ == nullptr || size_ == 0) return data_;
    return maker_->all(total_) + first_;
  }
  operator std::span<const std::byte>() const { return {data(), size_}; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }
  const std::byte& operator[](std::size_t i) const { return data()[i]; }
  const std::byte& back() const { return data()[size_ - 1]; }
  // A view of bytes [first, first + count), which lie within these; of made ones it makes none.
  StoredBytes subspan(std::size_t first, std::size_t count) const {
    StoredBytes part = *this;
    if (maker_ == nullptr) part.data_ += first;
    part.first_ += first;
    part.size_ = count;
    return part;
  }

 private:
  const std::byte* data_ = nullptr;
  const ByteMaker* maker_ = nullptr;
  std::size_t total_ = 0, first_ = 0;  // of the maker
  std::size_t size_ = 0;
};

}  // namespace tenon::inline TENON_ABI
