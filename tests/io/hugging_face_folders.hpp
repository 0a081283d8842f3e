#pragma once
// Tiny Hugging Face folders that a test describes and writes.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"
#include "tenon/io/safetensors.hpp"
#include "tenon/io/tensor_source.hpp"
#include "tenon/quant/dense.hpp"

namespace test {

struct FolderBytes {
  nlohmann::json config;
  struct Stored {
    std::string type;
    std::vector<tenon::Dim> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Stored> tensors;

  // Distinct values for every element of every tensor.
  void put(const std::string& name, std::vector<tenon::Dim> shape) {
    std::size_t count = 1;
    for (const tenon::Dim size : shape) count *= static_cast<std::size_t>(size);
    std::vector<float> values(count);
    for (float& value : values) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-33f;
    }
    put(name, std::move(shape), values);
  }
  void put(const std::string& name, std::vector<tenon::Dim> shape,
           const std::vector<float>& values) {
    Stored stored{"F32", std::move(shape), std::vector<std::byte>(values.size() * 4)};
    std::memcpy(stored.bytes.data(), values.data(), stored.bytes.size());
    tensors[name] = std::move(stored);
  }
  std::vector<float> values(const std::string& name) const {
    const auto& bytes = tensors.at(name).bytes;
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<tenon::SafeTensor> list() const {
    std::vector<tenon::SafeTensor> list;
    for (const auto& [name, stored] : tensors) {
      list.push_back({name, tenon::find_safe_type(stored.type), stored.shape, stored.bytes});
    }
    return list;
  }
  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    write_file(folder / "config.json", config.dump());
    tenon::write_safetensors(folder / "model.safetensors", list());
  }

 private:
  std::uint64_t state_ = 7;
};

struct TinySizes {
  tenon::Dim width = 24, layers = 2, heads = 4, kv_heads = 2, head_dim = 16, hidden = 40,
             vocab = 50;
};

// The keys and tensors that families like Llama share.
inline FolderBytes tiny_folder(const std::string& type, const TinySizes& s = {}, bool tied = false,
                               bool mlp = true) {
  FolderBytes folder;
  folder.config = {{"architectures", {"TinyForCausalLM"}},
                   {"model_type", type},
                   {"hidden_size", s.width},
                   {"num_hidden_layers", s.layers},
                   {"num_attention_heads", s.heads},
                   {"num_key_value_heads", s.kv_heads},
                   {"head_dim", s.head_dim},
                   {"intermediate_size", s.hidden},
                   {"vocab_size", s.vocab},
                   {"max_position_embeddings", 64},
                   {"rms_norm_eps", 1e-5},
                   {"rope_theta", 10000.0},
                   {"tie_word_embeddings", tied}};
  folder.put("model.embed_tokens.weight", {s.vocab, s.width});
  folder.put("model.norm.weight", {s.width});
  if (!tied) folder.put("lm_head.weight", {s.vocab, s.width});
  for (tenon::Dim i = 0; i < s.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    folder.put(at + "input_layernorm.weight", {s.width});
    folder.put(at + "post_attention_layernorm.weight", {s.width});
    folder.put(at + "self_attn.q_proj.weight", {s.heads * s.head_dim, s.width});
    folder.put(at + "self_attn.k_proj.weight", {s.kv_heads * s.head_dim, s.width});
    folder.put(at + "self_attn.v_proj.weight", {s.kv_heads * s.head_dim, s.width});
    folder.put(at + "self_attn.o_proj.weight", {s.width, s.heads * s.head_dim});
    if (!mlp) continue;
    folder.put(at + "mlp.gate_proj.weight", {s.hidden, s.width});
    folder.put(at + "mlp.up_proj.weight", {s.hidden, s.width});
    folder.put(at + "mlp.down_proj.weight", {s.width, s.hidden});
  }
  return folder;
}

// An F32 tensor's values.
inline std::vector<float> floats(const tenon::TensorSource& source, std::string_view name) {
  const tenon::TensorInfo* tensor = source.find(name);
  REQUIRE(tensor != nullptr);
  REQUIRE(tensor->ggml_type == tenon::F32::ggml_type);
  std::vector<float> values(tensor->data.size() / 4);
  tenon::F32::decode(tensor->data.data(), static_cast<tenon::Dim>(values.size()), values.data());
  return values;
}
inline bool same_tensors(const tenon::TensorSource& a, const tenon::TensorSource& b) {
  if (a.tensors().size() != b.tensors().size()) return false;
  for (const tenon::TensorInfo& tensor : a.tensors()) {
    const tenon::TensorInfo* other = b.find(tensor.name);
    if (other == nullptr || other->ggml_type != tensor.ggml_type || other->shape != tensor.shape ||
        !std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin())) {
      UNSCOPED_INFO(tensor.name << " differs");
      return false;
    }
  }
  return true;
}

}  // namespace test
