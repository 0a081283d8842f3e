#pragma once
// A Llama checkpoint in memory with seeded random weights, any sizes, any format per matrix.
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tenon/io/tensor_source.hpp"
#include "tenon/quant/any_of.hpp"
#include "tenon/quant/blocks.hpp"
#include "tenon/quant/dense.hpp"

namespace synthetic {

using Formats =
    tenon::AnyOf<tenon::F32, tenon::F16, tenon::Bf16, tenon::Q8_0, tenon::Q4_0, tenon::Q4_1>;

struct Sizes {
  tenon::Dim width = 64, layers = 2, heads = 4, kv_heads = 2, head_dim = 16, hidden = 96,
             vocab = 300;
  bool tied = true;
};

class Llama final : public tenon::TensorSource {
 public:
  // `format` is the ggml type of every matrix.
  explicit Llama(const Sizes& s, int format = tenon::F32::ggml_type) : format_(format) {
    metadata_.set("general.architecture", "llama");
    put("llama.embedding_length", s.width);
    put("llama.block_count", s.layers);
    put("llama.feed_forward_length", s.hidden);
    put("llama.attention.head_count", s.heads);
    put("llama.attention.head_count_kv", s.kv_heads);
    put("llama.attention.key_length", s.head_dim);
    put("llama.attention.value_length", s.head_dim);
    put("llama.rope.dimension_count", s.head_dim);
    put("llama.context_length", 4096);
    metadata_.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    matrix("token_embd.weight", s.vocab, s.width);
    if (!s.tied) matrix("output.weight", s.vocab, s.width);
    vector("output_norm.weight", s.width);
    for (tenon::Dim i = 0; i < s.layers; ++i) {
      const std::string at = "blk." + std::to_string(i) + ".";
      vector(at + "attn_norm.weight", s.width);
      matrix(at + "attn_q.weight", s.heads * s.head_dim, s.width);
      matrix(at + "attn_k.weight", s.kv_heads * s.head_dim, s.width);
      matrix(at + "attn_v.weight", s.kv_heads * s.head_dim, s.width);
      matrix(at + "attn_output.weight", s.width, s.heads * s.head_dim);
      vector(at + "ffn_norm.weight", s.width);
      matrix(at + "ffn_gate.weight", s.hidden, s.width);
      matrix(at + "ffn_up.weight", s.hidden, s.width);
      matrix(at + "ffn_down.weight", s.width, s.hidden);
    }
  }

  std::string_view origin() const override { return "synthetic.gguf"; }
  const tenon::Metadata& metadata() const override { return metadata_; }
  std::span<const tenon::TensorInfo> tensors() const override { return tensors_; }
  const tenon::TensorInfo* find(std::string_view name) const override {
    for (const tenon::TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  // For tests of refusals: change whatever there is.
  tenon::Metadata& edit_metadata() { return metadata_; }
  std::vector<tenon::TensorInfo>& edit_tensors() { return tensors_; }
  tenon::TensorInfo& edit(std::string_view name) {
    return const_cast<tenon::TensorInfo&>(*find(name));
  }
  // The bytes of a tensor, to be written over.
  std::byte* bytes(std::string_view name) {
    return const_cast<std::byte*>(find(name)->data.data());
  }
  void put(std::string key, tenon::Dim value) {
    metadata_.set(std::move(key), static_cast<std::uint32_t>(value));
  }
  void matrix(const std::string& name, tenon::Dim out, tenon::Dim in) {
    std::vector<float> values(static_cast<std::size_t>(out * in));
    const float scale = 1.5f / std::sqrt(static_cast<float>(in));
    for (float& value : values) value = scale * draw();
    add(name, {out, in}, format_, values);
  }
  void vector(const std::string& name, tenon::Dim n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) value = 1 + 0.25f * draw();
    add(name, {n}, tenon::F32::ggml_type, values);
  }

 private:
  // Uniform in [-1, 1), from a linear congruential generator.
  float draw() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-31f;
  }
  void add(const std::string& name, std::vector<tenon::Dim> shape, int format,
           const std::vector<float>& values) {
    using tenon::FormatList;
    const int tag = tenon::tag_of_ggml_type<Formats>(format);
    std::vector<std::byte>& bytes = data_.emplace_back();
    const tenon::Dim columns = shape.back();
    const tenon::Dim rows = static_cast<tenon::Dim>(values.size()) / columns;
    FormatList<Formats>::visit(tag, [&]<class F>(F) {
      const std::size_t row = tenon::row_bytes<F>(columns);
      bytes.resize(row * static_cast<std::size_t>(rows));
      for (tenon::Dim r = 0; r < rows; ++r) {
        tenon::encode_row<F>(values.data() + r * columns, columns,
                             bytes.data() + static_cast<std::size_t>(r) * row);
      }
    });
    tensors_.push_back({name, format, std::move(shape), bytes});
  }

  int format_;
  std::uint64_t state_ = 2026;
  tenon::Metadata metadata_;
  std::vector<tenon::TensorInfo> tensors_;
  std::deque<std::vector<std::byte>> data_;
};

}  // namespace synthetic
