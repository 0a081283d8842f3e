#pragma once
// Checkpoints as the Hugging Face hub holds them: a folder with config.json and safetensors files.
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/metadata.hpp"
#include "../core/stored_bytes.hpp"
#include "safetensors.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
class FolderReader;
}

// An open folder, which looks like the GGUF file that llama.cpp's converter would make of it:
// metadata with GGUF's keys (general.architecture, llama.block_count, ...), tensors with GGUF's
// names and order of rows, experts of a layer in one tensor, vectors as f32, F8 weights times their
// scales as bf16. Tensors that do not lie in the files like that are made while they are read, a
// part at a time; nothing is kept of them but small vectors.
//
// Opening checks everything that can be known without reading weights: config.json is understood
// whole (a key that may change the result and is not understood is a LoadError that names it), and
// every tensor has its place. The text files are keys of the metadata too:
// * "tokenizer.huggingface.json" is tokenizer.json, "tokenizer.huggingface.config" is
//   tokenizer_config.json, "tokenizer.sentencepiece.model" are the bytes of tokenizer.model;
// * "tokenizer.chat_template", "tokenizer.ggml.bos_token_id", "...eos_token_id" and
//   "...eos_token_ids" (all ids that end a text) are set from whichever file says them;
// * "tenon.huggingface.config" is config.json, to write it again.
class HuggingFaceFolder final : public TensorSource {
 public:
  // Families by the model_type of config.json: llama, mistral, mixtral, qwen2, qwen3, qwen3_moe,
  // gemma2, gemma3 (its text part), phi3, deepseek_v2, deepseek_v3, gpt_oss. Weights must be F32,
  // F16, BF16 or F8 with scales, experts of gpt_oss MXFP4. LoadError otherwise, naming key, tensor
  // or file.
  static HuggingFaceFolder open(const std::filesystem::path& folder);

  std::string_view origin() const override { return origin_; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override { return index_.find(name); }
  void done_with(std::span<const std::byte> part) const override;

  // Keys of config.json and tensors that were left out because they change no result.
  std::span<const std::string> ignored_keys() const { return ignored_keys_; }
  std::span<const std::string> ignored_tensors() const { return ignored_tensors_; }

 private:
  friend class detail::FolderReader;
  HuggingFaceFolder() = default;

  std::string origin_;
  std::vector<std::unique_ptr<const SafeTensors>> files_;
  std::vector<std::unique_ptr<const ByteMaker>> makers_;
  std::deque<std::vector<float>> vectors_;  // of tensors that are in no file
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  TensorIndex index_;
  std::vector<std::string> ignored_keys_, ignored_tensors_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "hugging_face.inl"
#endif
