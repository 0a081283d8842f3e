#pragma once
// How much, and how often, a call takes from operator new, freed again or not. Link
// allocations.cpp.
#include <cstddef>
#include <utility>

namespace test {

std::size_t bytes_allocated_so_far();
std::size_t allocations_so_far();

template <class Call>
std::size_t bytes_allocated_by(Call&& call) {
  const std::size_t before = bytes_allocated_so_far();
  std::forward<Call>(call)();
  return bytes_allocated_so_far() - before;
}

// The most that is taken at once while the call runs, beyond what was taken before. No other thread
// may allocate.
std::size_t bytes_held();
std::size_t most_bytes_held();
void forget_most_bytes_held();

template <class Call>
std::size_t most_bytes_held_by(Call&& call) {
  const std::size_t before = bytes_held();
  forget_most_bytes_held();
  std::forward<Call>(call)();
  return most_bytes_held() - before;
}

}  // namespace test
