#pragma once
// A 64-bit checksum against damage, not against forgery.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

// Four lanes take eight bytes each in turn, so that it runs at the speed of memory. Every step is a
// bijection of its lane for a given word and of the word for a given lane, and so is the way lanes
// end in the value: a change within one eight-byte word always changes it, any other
// but for chance. The value depends on the bytes alone, not on how they were divided over
// calls.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    total_ += bytes.size();
    const std::byte* from = bytes.data();
    std::size_t left = bytes.size();
    if (pending_ > 0) {
      const std::size_t some = left < block - pending_ ? left : block - pending_;
      if (some > 0) std::memcpy(partial_.data() + pending_, from, some);
      pending_ += some;
      from += some;
      left -= some;
      if (pending_ < block) return;
      mix(partial_.data());
      pending_ = 0;
    }
    for (; left >= block; from += block, left -= block) mix(from);
    if (left > 0) std::memcpy(partial_.data(), from, left);
    pending_ = left;
  }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void add(T value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  // The length too, so that ("ab", "c") is not ("a", "bc").
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    add(std::as_bytes(std::span(text)));
  }

  std::uint64_t value() const {
    Checksum last = *this;
    if (pending_ > 0) {
      std::memset(last.partial_.data() + pending_, 0, block - pending_);
      last.mix(last.partial_.data());
    }
    std::uint64_t sum = total_ * odd_a;
    for (const std::uint64_t lane : last.lanes_) {
      sum = std::rotl((sum ^ lane) * odd_b, 27) + odd_a;
    }
    sum = (sum ^ sum >> 32) * odd_b;
    sum = (sum ^ sum >> 29) * odd_a;
    return sum ^ sum >> 32;
  }

 private:
  static constexpr std::size_t block = 32;
  static constexpr std::uint64_t odd_a = 0x9e3779b97f4a7c15u, odd_b = 0xd1b54a32d192ed03u;

  void mix(const std::byte* from) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), from, block);
    for (std::size_t i = 0; i < 4; ++i) {
      lanes_[i] = std::rotl((lanes_[i] ^ words[i]) * odd_a, 31) + odd_b;
    }
  }

  std::array<std::uint64_t, 4> lanes_{odd_a, odd_b, odd_a ^ odd_b, odd_a + odd_b};
  std::array<std::byte, block> partial_{};
  std::size_t pending_ = 0;
  std::uint64_t total_ = 0;
};

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace tenon::inline TENON_ABI
