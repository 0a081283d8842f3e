// Replaces operator new of the test program by one that counts.
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> allocated{0}, calls{0};

void* counted(std::size_t bytes) noexcept {
  allocated += bytes;
  ++calls;
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* counted_or_throw(std::size_t bytes) {
  if (void* at = counted(bytes)) return at;
  throw std::bad_alloc();
}
}  // namespace

std::size_t test::bytes_allocated_so_far() {
  return allocated;
}

std::size_t test::allocations_so_far() {
  return calls;
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
  std::free(at);
}
void operator delete[](void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::size_t) noexcept {
  std::free(at);
}
void operator delete(void* at, const std::nothrow_t&) noexcept {
  std::free(at);
}
void operator delete[](void* at, const std::nothrow_t&) noexcept {
  std::free(at);
}
