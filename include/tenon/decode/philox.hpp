#pragma once
// Random numbers without a state: every number is a function of (seed, position, purpose), so what
// one sequence draws can depend neither on its batch mates nor on how often anything else was
// drawn.
#include <array>
#include <cstdint>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// Philox4x32-10: ten rounds of multiply, swap and xor on a 128-bit counter under a 64-bit key.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;  // the golden ratio and sqrt(3) - 1 as 32-bit fractions
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// A uniform number in [0, 1), a multiple of 2^-53, for one position of a sequence.
// `purpose` separates several draws at one position: 0 draws the token itself; a sampling step that
// needs chance of its own takes another number and keeps to it.
constexpr double uniform(std::uint64_t seed, std::int64_t position, std::uint32_t purpose = 0) {
  const auto at = static_cast<std::uint64_t>(position);
  const std::array<std::uint32_t, 4> words =
      philox4x32({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), purpose, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace tenon::inline TENON_ABI
