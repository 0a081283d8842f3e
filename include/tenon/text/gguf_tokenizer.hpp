#pragma once
// Tokenizers as the metadata of GGUF files declares them.
#include "../core/metadata.hpp"
#include "loaded_tokenizer.hpp"

namespace tenon::inline TENON_ABI {

// From the keys "tokenizer.ggml.*": the kinds "llama" (SentencePiece BPE), "gpt2" (byte-level BPE),
// "bert" (WordPiece) and "t5" (unigram). LoadError for another kind, a pre-tokenizer that is not
// known, and as Vocabulary::from and each model's constructor say.
// With `inside`, the two kinds of SentencePiece look for user-defined pieces as SentencePiece
// itself does, after normalizing, where llama.cpp cuts the text at them before.
LoadedTokenizer load_gguf_tokenizer(const Metadata& metadata, bool inside = false);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "gguf_tokenizer.inl"
#endif
