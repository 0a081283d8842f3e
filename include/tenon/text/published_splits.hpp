#pragma once
// The pre-tokenizers that "tokenizer.ggml.pre" of a GGUF file can name.
#include <span>
#include <string_view>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

struct PublishedSplit {
  std::string_view names;  // with a space before and after each
  std::span<const std::string_view>
      expressions;  // one after the other, matches and gaps kept apart
  bool ignore_merges = false;
  bool adds_bos = false;  // where the file does not say
};

// Throws LoadError, which lists what there is, for a name that is not known.
const PublishedSplit& published_split(std::string_view name);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "published_splits.inl"
#endif
