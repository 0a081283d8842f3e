#pragma once
// What a family of tokenizers (SentencePiece, byte BPE, WordPiece, ...) adds to the common frame.
#include <string_view>
#include <vector>

#include "vocabulary.hpp"
#include "word_cache.hpp"

namespace tenon::inline TENON_ABI {

// A part of a text without special pieces, or at least without those that stand in the text itself.
struct Stretch {
  std::string_view text;
  bool first = true;           // it starts where the whole text does; else after a special piece
  bool parse_special = false;  // as in EncodeOptions
};

// Where encoding puts a space (or the mark that stands for one) in front of a stretch, which
// decoding takes away.
enum class SpaceInFront { never, of_the_text, of_every_stretch };

// Objects are immutable after construction and used from many threads.
class TextAlgorithm {
 public:
  TextAlgorithm() = default;
  virtual ~TextAlgorithm() = default;
  TextAlgorithm(const TextAlgorithm&) = delete;
  TextAlgorithm& operator=(const TextAlgorithm&) = delete;

  // Appends the ids of a stretch. Any bytes are legal; never throws for them, but for an expression
  // from a file that takes too many steps. The cache is the same for the stretches of one text.
  virtual void encode(const Stretch& stretch, WordCache& cache, std::vector<Token>& out) const = 0;
  // The bytes that a piece stands for in a text; of a control or unknown piece, its name.
  virtual std::string spell(const Vocabulary& vocabulary, Token id) const = 0;
  virtual SpaceInFront space_in_front() const = 0;
};

}  // namespace tenon::inline TENON_ABI
