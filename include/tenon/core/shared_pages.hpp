#pragma once
// Memory for what lives about equally long, such as the weights of a model.
#include <memory>
#include <mutex>
#include <span>

#include "memory.hpp"

namespace tenon::inline TENON_ABI {

// Buffers side by side in runs of huge pages. Decoding reads all weights once a step, and a matrix
// alone often fills no such page. A run is freed with the last of its buffers.
class SharedPages {
 public:
  struct Buffer {
    std::span<std::byte> bytes;  // uninitialised, on a cache line
    std::shared_ptr<void> owner;
  };
  // From any thread. CapacityError when there is not so much memory.
  static Buffer take(std::size_t bytes) {
    if (bytes < smallest || bytes >= run_bytes) return own(bytes);
    static std::mutex mutex;
    static std::weak_ptr<Run> current;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Run> run = current.lock();
    if (run == nullptr || run->memory.size() - run->used < bytes) {
      current = run = std::make_shared<Run>();
    }
    std::byte* at = run->memory.data() + run->used;
    run->used += round_up(bytes, cache_line);
    return {{at, bytes}, std::move(run)};
  }

 private:
  // So much at a time the allocator takes from the system, not from what was freed before; pages of
  // a run that nothing was taken from are never touched.
  static constexpr std::size_t run_bytes = std::size_t{64} << 20;
  // Less lies on a few small pages.
  static constexpr std::size_t smallest = std::size_t{32} << 10;
  struct Run {
    AlignedBuffer memory{run_bytes};
    std::size_t used = 0;
  };
  static Buffer own(std::size_t bytes) {
    auto buffer = std::make_shared<AlignedBuffer>(bytes);
    return {{buffer->data(), bytes}, std::move(buffer)};
  }
};

}  // namespace tenon::inline TENON_ABI
