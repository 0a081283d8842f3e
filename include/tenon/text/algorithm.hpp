#pragma once
// What a family of tokenizers (SentencePiece, byte BPE, WordPiece, ...) adds to the common frame.
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary.hpp"

namespace tenon::inline TENON_ABI {

// One header each derives from this and is entered in the list in tokenizer.inl. Objects are
// immutable after construction and used from many threads.
class TextAlgorithm {
 public:
  TextAlgorithm() = default;
  virtual ~TextAlgorithm() = default;
  TextAlgorithm(const TextAlgorithm&) = delete;
  TextAlgorithm& operator=(const TextAlgorithm&) = delete;

  // Appends the ids of a stretch of text without special pieces. The stretch starts at the start
  // of the whole text or right after a special piece. Any bytes are legal; never throws for them.
  virtual void encode(std::string_view text, std::vector<Token>& out) const = 0;
  // The bytes that a piece stands for in a text; of a control or unknown piece, its name.
  virtual std::string spell(const Vocabulary& vocabulary, Token id) const = 0;
  // Whether encode() puts a space in front of a stretch, which decoding then takes away.
  virtual bool adds_space() const = 0;
  // What encoding does when the file does not say.
  virtual bool adds_bos() const = 0;
  virtual bool adds_eos() const = 0;
};

}  // namespace tenon::inline TENON_ABI
