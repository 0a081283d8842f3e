// Checksum: every small change changes it, however the bytes are divided.
#include "tenon/core/checksum.hpp"

#include <set>
#include <vector>

#include "catch.hpp"

using namespace tenon;

namespace {
std::vector<std::byte> some(std::size_t n) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i * i * 31 + i);
  return out;
}
}  // namespace

TEST_CASE("every change of a byte, every truncation and every length differ", "[checksum]") {
  std::set<std::uint64_t> seen;
  std::size_t made = 0;
  for (const std::size_t n : {1u, 7u, 8u, 31u, 32u, 33u, 64u, 100u}) {
    auto bytes = some(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (const int flip : {1, 128, 255, 0x55}) {
        const std::byte was = bytes[i];
        bytes[i] ^= static_cast<std::byte>(flip);
        seen.insert(checksum(bytes));
        bytes[i] = was;
        ++made;
      }
    }
  }
  for (std::size_t n = 0; n <= 130; ++n, ++made) seen.insert(checksum(some(n)));
  // Zeros of different lengths, and a word that moved to its neighbour lane.
  for (std::size_t n = 2; n <= 130; ++n, ++made) {
    seen.insert(checksum(std::vector<std::byte>(n)));
  }
  CHECK(seen.size() == made);
}

TEST_CASE("words exchanged within and between blocks are noticed", "[checksum]") {
  const auto bytes = some(128);
  for (std::size_t a = 0; a < 16; ++a) {
    for (std::size_t b = a + 1; b < 16; ++b) {
      auto moved = bytes;
      for (std::size_t i = 0; i < 8; ++i) std::swap(moved[8 * a + i], moved[8 * b + i]);
      CHECK(checksum(moved) != checksum(bytes));
    }
  }
}

TEST_CASE("the division over calls does not matter", "[checksum]") {
  const auto bytes = some(200);
  const std::span<const std::byte> all(bytes);
  for (std::size_t a = 0; a <= 200; a += 3) {
    for (std::size_t b = a; b <= 200; b += 17) {
      Checksum sum;
      sum.add(all.first(a));
      sum.add(all.subspan(a, b - a));
      sum.add(all.subspan(b));
      CHECK(sum.value() == checksum(all));
    }
  }
  Checksum a, b;
  a.add(std::string_view("ab"));
  a.add(std::string_view("c"));
  b.add(std::string_view("a"));
  b.add(std::string_view("bc"));
  CHECK(a.value() != b.value());
}
