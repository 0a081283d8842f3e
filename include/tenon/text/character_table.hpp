#pragma once
// From the character at the start of a text to its symbol.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "../core/utf8.hpp"
#include "merge_table.hpp"

namespace tenon::inline TENON_ABI {

// A character is a well-formed UTF-8 sequence or, where there is none, one byte. Pages of 256 code
// points are made as characters are set, so a lookup is two array reads.
class CharacterTable {
 public:
  struct Front {
    std::size_t size = 0;  // bytes of the character
    Symbol symbol = no_symbol;
  };

  CharacterTable() { single_.fill(no_symbol); }

  // The text must not be empty.
  Front front(std::string_view text) const {
    const auto byte = static_cast<unsigned char>(text[0]);
    if (byte < 0x80) return {1, single_[byte]};
    const Utf8Char character = utf8_front(text);
    if (character.length == 0) return {1, single_[byte]};
    return {static_cast<std::size_t>(character.length), symbol(character.code)};
  }
  // Enters the character at the start of the text.
  void set_front(std::string_view text, Symbol symbol) {
    const Utf8Char character = utf8_front(text);
    if (character.length < 2) {
      single_[static_cast<unsigned char>(text[0])] = symbol;
      return;
    }
    std::uint16_t& page = pages_[character.code / page_size];
    if (page == 0) {
      symbols_.resize(symbols_.size() + page_size, no_symbol);
      page = static_cast<std::uint16_t>(symbols_.size() / page_size);
    }
    symbols_[(page - 1u) * page_size + character.code % page_size] = symbol;
  }

 private:
  static constexpr std::size_t page_size = 256;

  Symbol symbol(std::uint32_t code) const {
    const std::uint16_t page = pages_[code / page_size];
    return page == 0 ? no_symbol : symbols_[(page - 1u) * page_size + code % page_size];
  }

  std::array<Symbol, 256> single_;  // ASCII, and bytes that are not UTF-8
  std::vector<std::uint16_t> pages_ = std::vector<std::uint16_t>(0x110000 / page_size);  // 1-based
  std::vector<Symbol> symbols_;
};

}  // namespace tenon::inline TENON_ABI
