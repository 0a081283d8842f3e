#pragma once
// Where a text can be cut because no piece reaches across.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "merge_table.hpp"

namespace tenon::inline TENON_ABI {

// The pairs of characters that stand side by side inside some piece, as a bitmap of their hashes.
// A pair that is absent can never come to lie in one piece, so the text on its two sides is merged
// independently; a pair that only shares its bit with a real one costs time and changes nothing.
class PairFilter {
 public:
  void add(Symbol left, Symbol right) { words_[at(left, right) / 64] |= bit(left, right); }
  bool may_contain(Symbol left, Symbol right) const {
    return (words_[at(left, right) / 64] & bit(left, right)) != 0;
  }

 private:
  // 32 KiB: Llama 2 has 3k pairs, vocabularies of 256k pieces with CJK some 100k.
  static constexpr int bits = 18;

  static std::size_t at(Symbol left, Symbol right) {
    return (left * 0x9E3779B97F4A7C15 + right * 0xC2B2AE3D27D4EB4F) >> (64 - bits);
  }
  static std::uint64_t bit(Symbol left, Symbol right) {
    return std::uint64_t{1} << at(left, right) % 64;
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>((std::size_t{1} << bits) / 64);
};

}  // namespace tenon::inline TENON_ABI
