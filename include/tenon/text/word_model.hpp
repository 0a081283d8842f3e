#pragma once
// What turns one word into ids.
#include <array>
#include <string_view>
#include <vector>

#include "../core/types.hpp"
#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

// Immutable after construction and used from many threads.
class WordModel {
 public:
  WordModel() = default;
  virtual ~WordModel() = default;
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;
  // Appends the ids of a word, which is not empty. Any bytes are legal; never throws for them.
  virtual void encode(std::string_view word, std::vector<Token>& out) const = 0;
};

// The piece that stands for each byte, -1 where there is none.
using BytePieces = std::array<Token, 256>;
inline BytePieces no_byte_pieces() {
  BytePieces pieces{};
  pieces.fill(-1);
  return pieces;
}
inline BytePieces byte_pieces_of(const Vocabulary& vocabulary) {
  BytePieces pieces{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    pieces[byte] = vocabulary.byte_piece(static_cast<unsigned char>(byte)).value_or(-1);
  }
  return pieces;
}

}  // namespace tenon::inline TENON_ABI
