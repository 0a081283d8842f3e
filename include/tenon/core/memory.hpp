#pragma once
// Memory whose size is known before the work starts: aligned buffers and the per-step scratch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "error.hpp"
#include "types.hpp"

namespace tenon::inline TENON_ABI {

inline constexpr std::size_t cache_line = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
constexpr Dim round_up(Dim n, Dim multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
// Sizes of what is about to be allocated. CapacityError when they leave the address space.
constexpr std::size_t checked_multiply(std::size_t a, std::size_t b) {
  if (b != 0 && a > static_cast<std::size_t>(-1) / 2 / b) {
    fail<CapacityError>("a size must fit the address space, ", a, " x ", b,
                        " bytes do not; ask for less");
  }
  return a * b;
}
constexpr std::size_t checked_add(std::size_t a, std::size_t b) {
  if (a > static_cast<std::size_t>(-1) / 2 - b) {
    fail<CapacityError>("a size must fit the address space, ", a, " + ", b,
                        " bytes do not; ask for less");
  }
  return a + b;
}
constexpr Dim ceil_div(Dim n, Dim by) {
  return (n + by - 1) / by;
}

// Uninitialised bytes on a cache line; what fills whole huge pages lies on them where the system
// has some: weights are read once a step, and every small page would cost a walk of the page table.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) : bytes_(checked_multiply(bytes, 1)) {
    if (bytes == 0) return;
    const std::size_t alignment = bytes >= huge_page ? huge_page : cache_line;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(bytes, alignment))));
    if (!data_) {
      fail<CapacityError>("a buffer of ", bytes,
                          " bytes could not be allocated; free memory, or ask for a smaller model, "
                          "a shorter context or fewer sequences");
    }
    ask_for_huge_pages();
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::move(other.data_)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  void ask_for_huge_pages() {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const std::size_t whole =
        bytes_ / huge_page * huge_page;  // no page for a rest: it stays unused
    if (whole > 0) static_cast<void>(::madvise(data_.get(), whole, MADV_HUGEPAGE));
#endif
  }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

// Scratch of one step. A measuring workspace hands out null pointers and records the peak; a real
// one of that size then serves every step without allocating.
class Workspace {
 public:
  Workspace() = default;  // measures
  explicit Workspace(std::size_t bytes) : buffer_(bytes), measuring_(false) {}

  // `count` values of T, uninitialised, on a cache line; valid until the enclosing Frame ends.
  template <class T>
  T* take(Dim count) {
    const std::size_t bytes = round_up(static_cast<std::size_t>(count) * sizeof(T), cache_line);
    const std::size_t at = std::exchange(used_, used_ + bytes);
    peak_ = (std::max)(peak_, used_);
    if (measuring_) return nullptr;
    if (used_ > buffer_.size()) std::abort();  // a layer took more than it measured: our own bug
    return reinterpret_cast<T*>(buffer_.data() + at);
  }
  bool measuring() const { return measuring_; }
  std::size_t peak() const { return peak_; }
  std::size_t bytes() const { return buffer_.size(); }

  // Gives back at its end what was taken since its start.
  class Frame {
   public:
    explicit Frame(Workspace& work) : work_(work), used_(work.used_) {}
    ~Frame() { work_.used_ = used_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Workspace& work_;
    std::size_t used_;
  };
  [[nodiscard]] Frame frame() { return Frame(*this); }

 private:
  AlignedBuffer buffer_;
  std::size_t used_ = 0, peak_ = 0;
  bool measuring_ = true;
};

}  // namespace tenon::inline TENON_ABI
