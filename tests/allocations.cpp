// Replaces operator new of the test program by one that counts.
#include "allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {
std::atomic<std::size_t> allocated{0}, calls{0}, held{0}, most_held{0};

// In front of what is handed out stands its size.
constexpr std::size_t front = alignof(std::max_align_t);
static_assert(front >= sizeof(std::size_t));

void* counted(std::size_t bytes) noexcept {
  allocated += bytes;
  ++calls;
  if (bytes > static_cast<std::size_t>(-1) - front) return nullptr;
  auto* at = static_cast<unsigned char*>(std::malloc(bytes + front));
  if (at == nullptr) return nullptr;
  std::memcpy(at, &bytes, sizeof bytes);
  const std::size_t now = held += bytes;
  for (std::size_t most = most_held; now > most && !most_held.compare_exchange_weak(most, now);) {}
  return at + front;
}
void* counted_or_throw(std::size_t bytes) {
  if (void* at = counted(bytes)) return at;
  throw std::bad_alloc();
}
void release(void* at) noexcept {
  if (at == nullptr) return;
  unsigned char* whole = static_cast<unsigned char*>(at) - front;
  std::size_t bytes = 0;
  std::memcpy(&bytes, whole, sizeof bytes);
  held -= bytes;
  std::free(whole);
}
}  // namespace

std::size_t test::bytes_allocated_so_far() {
  return allocated;
}

std::size_t test::allocations_so_far() {
  return calls;
}

std::size_t test::bytes_held() {
  return held;
}

std::size_t test::most_bytes_held() {
  return most_held;
}

void test::forget_most_bytes_held() {
  most_held = held.load();
}

void* operator new(std::size_t bytes) {
  return counted_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted_or_throw(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes);
}
void operator delete(void* at) noexcept {
  release(at);
}
void operator delete[](void* at) noexcept {
  release(at);
}
void operator delete(void* at, std::size_t) noexcept {
  release(at);
}
void operator delete[](void* at, std::size_t) noexcept {
  release(at);
}
void operator delete(void* at, const std::nothrow_t&) noexcept {
  release(at);
}
void operator delete[](void* at, const std::nothrow_t&) noexcept {
  release(at);
}
