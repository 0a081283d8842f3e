#pragma once
// Tokenizers as tokenizer.model files of SentencePiece declare them.
#include <string_view>

#include "../core/metadata.hpp"
#include "loaded_tokenizer.hpp"

namespace tenon::inline TENON_ABI {

// From "tokenizer.sentencepiece.model" (the bytes of the file), a protobuf message; kinds BPE and
// unigram. The ids of "tokenizer.ggml.*_token_id(s)", where there are any, win over the file's.
// LoadError for a message that is damaged, another kind, or a step that is not implemented.
LoadedTokenizer load_sentencepiece_tokenizer(const Metadata& metadata);
// The same vocabulary in the keys of GGUF.
Metadata metadata_of_sentencepiece(std::string_view model);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "sentencepiece_model.inl"
#endif
