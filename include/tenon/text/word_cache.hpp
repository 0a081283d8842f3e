#pragma once
// Remembers, within one call of encode(), the ids of words: text repeats itself.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// Open addressing with few probes: where a word finds no place it is encoded again. Takes no
// memory until the first insertion and at most about 4 MiB; it is emptied when full.
class WordCache {
 public:
  static constexpr std::size_t longest_word = 64;

  // Appends the ids of the word when they are known. The same text may stand for different ids at
  // different stages of a pipeline.
  bool find(std::string_view word, std::size_t stage, std::vector<Token>& out) {
    const std::uint64_t hash = hash_of(word, stage);
    if (slots_.empty()) return false;
    for (std::size_t i = 0; i < probes; ++i) {
      const Slot& slot = slots_[(hash + i) & (slots_.size() - 1)];
      if (slot.ids == 0) return false;
      if (slot.hash != hash || slot.stage != stage || slot.size != word.size()) continue;
      if (std::memcmp(text_.data() + slot.text_at, word.data(), word.size()) != 0) continue;
      const Token* ids = ids_.data() + slot.ids_at;
      out.insert(out.end(), ids, ids + slot.ids);
      return true;
    }
    return false;
  }
  // Remembers ids [from, out.size()) for a word that find() did not find.
  void insert(std::string_view word, std::size_t stage, const std::vector<Token>& out,
              std::size_t from) {
    const std::size_t count = out.size() - from;
    if (count == 0 || count > longest_word) return;
    const std::uint64_t hash = hash_of(word, stage);
    if (2 * (words_ + 1) > slots_.size()) grow();
    for (std::size_t i = 0; i < probes; ++i) {
      Slot& slot = slots_[(hash + i) & (slots_.size() - 1)];
      if (slot.ids != 0) continue;
      slot = {hash,
              static_cast<std::uint32_t>(text_.size()),
              static_cast<std::uint32_t>(ids_.size()),
              static_cast<std::uint32_t>(stage),
              static_cast<std::uint16_t>(word.size()),
              static_cast<std::uint16_t>(count)};
      text_ += word;
      ids_.insert(ids_.end(), out.begin() + static_cast<std::ptrdiff_t>(from), out.end());
      ++words_;
      return;
    }
  }

 private:
  static constexpr std::size_t probes = 8, most_slots = std::size_t{1} << 16;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t text_at = 0, ids_at = 0;
    std::uint32_t stage = 0;
    std::uint16_t size = 0, ids = 0;  // no ids: vacant
  };

  static std::uint64_t hash_of(std::string_view word, std::size_t stage) {
    std::uint64_t hash = (word.size() + 256 * stage) * 0x9E3779B97F4A7C15;
    const char* at = word.data();
    std::size_t left = word.size();
    for (; left >= 8; at += 8, left -= 8) mix(hash, at, 8);
    mix(hash, at, left);
    return hash ^ hash >> 29;
  }
  static void mix(std::uint64_t& hash, const char* at, std::size_t size) {
    std::uint64_t part = 0;
    std::memcpy(&part, at, size);
    hash = (hash ^ part) * 0xC2B2AE3D27D4EB4F;
    hash ^= hash >> 32;
  }
  void grow() {
    if (slots_.size() >= most_slots) {
      slots_.assign(slots_.size(), {});
      text_.clear();
      ids_.clear();
      words_ = 0;
      return;
    }
    std::vector<Slot> old(slots_.empty() ? 256 : 4 * slots_.size());
    old.swap(slots_);
    words_ = 0;
    for (const Slot& slot : old) {
      for (std::size_t i = 0; slot.ids != 0 && i < probes; ++i) {
        Slot& place = slots_[(slot.hash + i) & (slots_.size() - 1)];
        if (place.ids != 0) continue;
        place = slot;
        ++words_;
        break;
      }
    }
  }

  std::vector<Slot> slots_;  // a power of two
  std::string text_;
  std::vector<Token> ids_;
  std::size_t words_ = 0;
};

}  // namespace tenon::inline TENON_ABI
