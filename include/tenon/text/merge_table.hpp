#pragma once
// Which two neighbouring symbols become which piece, and which such merge goes first.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

// A number for a piece (its id) or for a character that is no piece itself (numbers past the ids).
using Symbol = std::uint32_t;
inline constexpr Symbol no_symbol = 0xFFFFFFFF;

struct Merge {
  static constexpr std::uint32_t never = 0xFFFFFFFF;
  Symbol piece = no_symbol;
  std::uint32_t rank = never;  // the lowest rank merges first
};

struct MergeRule {
  Symbol left, right;
  Merge merge;
};

// An immutable hash table from a pair of symbols to its merge: open addressing, at most half full,
// 16 bytes a slot, so that a lookup is one cache line.
class MergeTable {
 public:
  // A vocabulary of 256k pieces has some 500k rules. The bound keeps a hostile file from asking for
  // many times its own size in memory.
  static constexpr std::size_t most_rules = std::size_t{1} << 22;

  MergeTable() : MergeTable(std::vector<MergeRule>()) {}
  // Of two rules for the same pair the first is kept.
  explicit MergeTable(const std::vector<MergeRule>& rules) {
    if (rules.size() > most_rules) {
      fail<LoadError>("the vocabulary must have at most ", most_rules, " merges, it has ",
                      rules.size(), " or more; the file is damaged or hostile");
    }
    int bits = 4;
    while ((std::size_t{1} << bits) < 2 * rules.size()) ++bits;
    shift_ = 64 - bits;
    mask_ = (std::size_t{1} << bits) - 1;
    slots_.resize(mask_ + 1);
    // A multiplier nobody can know in advance: no file can be made whose rules all collide.
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    multiplier_ ^= static_cast<std::uint64_t>(ticks) << 1;
    multiplier_ ^= static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(slots_.data()))
                   << 16;
    for (const MergeRule& rule : rules) {
      Slot& slot = slots_[find_slot(key_of(rule.left, rule.right))];
      if (slot.key == vacant) slot = {key_of(rule.left, rule.right), rule.merge};
    }
  }

  // rank is Merge::never when the two do not merge.
  Merge find(Symbol left, Symbol right) const {
    return slots_[find_slot(key_of(left, right))].merge;
  }

 private:
  static constexpr std::uint64_t vacant = 0xFFFFFFFFFFFFFFFF;  // no_symbol twice: never a key
  struct Slot {
    std::uint64_t key = vacant;
    Merge merge;
  };
  static std::uint64_t key_of(Symbol left, Symbol right) {
    return std::uint64_t{left} << 32 | right;
  }
  std::size_t find_slot(std::uint64_t key) const {
    std::uint64_t hash = key * multiplier_;
    hash = (hash ^ hash >> 32) * multiplier_;
    std::size_t at = static_cast<std::size_t>(hash >> shift_);
    while (slots_[at].key != key && slots_[at].key != vacant) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::uint64_t multiplier_ = 0x9E3779B97F4A7C15;  // stays odd
};

}  // namespace tenon::inline TENON_ABI
