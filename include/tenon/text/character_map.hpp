#pragma once
// The normalization that a SentencePiece model carries ("precompiled_charsmap"): which sequences of
// characters become which. Source: the SentencePiece and Darts-clone file formats.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/metadata.hpp"
#include "byte_trie.hpp"
#include "pretokens.hpp"

namespace tenon::inline TENON_ABI {

// A size, a double-array trie of that many bytes (32-bit units), and texts that end with NUL.
class CharacterMap {
 public:
  struct Found {
    std::size_t size = 0;  // bytes of the text that are replaced
    std::string_view with;
  };

  // LoadError when the parts do not fit together.
  explicit CharacterMap(std::string_view bytes);

  // The longest (or the shortest) sequence of the map that the text starts with.
  std::optional<Found> longest(std::string_view text) const { return find(text, true); }
  std::optional<Found> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Found> find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

// The steps of SentencePiece: the map's longest sequences are replaced, but not in the texts of
// `kept`; with `trim`, spaces at the ends go and of several in a row one stays.
TextStep sentencepiece_normalizer(std::optional<CharacterMap> map, bool trim, ByteTrie kept);
// The one that a GGUF file declares ("tokenizer.ggml.precompiled_charsmap" and
// "...remove_extra_whitespaces"); empty when it declares none.
TextStep declared_normalizer(const Metadata& metadata, ByteTrie kept);
// The step "Precompiled" of tokenizer.json: clusters of up to five bytes, else characters, are
// replaced by what the shortest sequence they start with becomes.
TextStep precompiled_normalizer(CharacterMap map);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "character_map.inl"
#endif
