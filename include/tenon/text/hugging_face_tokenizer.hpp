#pragma once
// Tokenizers as tokenizer.json files declare them.
#include "../core/metadata.hpp"
#include "loaded_tokenizer.hpp"

namespace tenon::inline TENON_ABI {

// From "tokenizer.huggingface.json" (the text of the file), "tokenizer.huggingface.config" (that of
// tokenizer_config.json) and, for roles the latter leaves open, "tokenizer.ggml.bos_token_id",
// "...eos_token_id" and "...eos_token_ids". LoadError for a file that is not what it should be and
// for every step that is not implemented, by name. Needs TENON_WITH_TEXT.
LoadedTokenizer load_hugging_face_tokenizer(const Metadata& metadata);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "hugging_face_tokenizer.inl"
#endif
