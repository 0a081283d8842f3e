#include <tenon/decode/philox.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "catch.hpp"

namespace {

using Words = std::array<std::uint32_t, 4>;

// The vectors that the authors publish with the generator (Random123, kat_vectors, philox4x32 10).
static_assert(tenon::philox4x32({0, 0, 0, 0}, {0, 0}) ==
              Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(tenon::philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
              Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(tenon::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                {0xa4093822, 0x299f31d0}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST_CASE("philox4x32 gives its published vectors at run time too") {
  volatile std::uint32_t zero = 0;
  CHECK(tenon::philox4x32({zero, zero, zero, zero}, {zero, zero}) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}

TEST_CASE("uniform() takes the first two words of the block") {
  // Block (0,0,0,0) under key 0 starts 6627e8d5 e169c58d: as one 64-bit number, its upper 53 bits.
  CHECK(tenon::uniform(0, 0) ==
        static_cast<double>(0xe169c58d6627e8d5u >> 11) / 9007199254740992.0);
}

TEST_CASE("uniform() stays in [0, 1), on a grid of 2^-53, with the moments of its distribution") {
  constexpr int draws = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double u = tenon::uniform(42, i);
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    REQUIRE(std::ldexp(u, 53) == std::floor(std::ldexp(u, 53)));
    sum += u;
    squares += u * u;
  }
  // Mean 1/2 and second moment 1/3, five standard errors: sqrt(1/12/n), sqrt(4/45/n).
  CHECK(std::abs(sum / draws - 1.0 / 2) < 5 * std::sqrt(1.0 / 12 / draws));
  CHECK(std::abs(squares / draws - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / draws));
}

TEST_CASE("every bit of seed, position and purpose matters to uniform()") {
  std::set<double> seen{tenon::uniform(0, 0)};
  for (int bit = 0; bit < 64; ++bit)
    CHECK(seen.insert(tenon::uniform(std::uint64_t{1} << bit, 0)).second);
  for (int bit = 0; bit < 63; ++bit)
    CHECK(seen.insert(tenon::uniform(0, std::int64_t{1} << bit)).second);
  for (int bit = 0; bit < 32; ++bit) CHECK(seen.insert(tenon::uniform(0, 0, 1u << bit)).second);
}

}  // namespace
