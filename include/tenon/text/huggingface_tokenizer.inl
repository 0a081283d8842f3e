#pragma once
#include "huggingface_tokenizer.hpp"
namespace tenon::inline TENON_ABI {
TENON_INLINE LoadedTokenizer load_huggingface_tokenizer(const Metadata&) {
  fail<LoadError>("todo");
}
}  // namespace tenon::inline TENON_ABI
