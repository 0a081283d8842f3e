#pragma once
// A checkpoint in memory for any model type: the type itself says which tensors it needs.
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "tenon/io/tensor_source.hpp"
#include "tenon/model/config_storage.hpp"
#include "tenon/model/tensor_list.hpp"

namespace random_source {

struct Key {
  std::string name;
  double number = 0;
  std::vector<double> layers = {};
};

class Source final : public tenon::TensorSource {
 public:
  // Seeded random F32 weights for model type M with this configuration; `with` names optional
  // tensors.
  template <class M>
  static Source of(const std::vector<Key>& keys, std::vector<std::string> with = {}) {
    Source source;
    source.metadata_.set("general.architecture", "random");
    std::vector<tenon::ConfigEntry> entries;
    for (const Key& key : keys) {
      entries.push_back({key.name, key.number, key.layers, {}, false});
      if (key.layers.empty()) {
        source.metadata_.set("random." + key.name, static_cast<float>(key.number));
      } else {
        source.metadata_.set(
            "random." + key.name,
            tenon::MetaValue{tenon::MetaType::array, tenon::MetaType::f64, key.layers});
      }
    }
    tenon::TensorList<typename M::formats> list(std::move(with));
    M::visit(tenon::ModelConfig{"random", entries}, list);
    for (const tenon::ListedTensor& tensor : list.tensors()) source.add(tensor);
    return source;
  }

  std::string_view origin() const override { return "random.gguf"; }
  const tenon::Metadata& metadata() const override { return metadata_; }
  std::span<const tenon::TensorInfo> tensors() const override { return tensors_; }
  const tenon::TensorInfo* find(std::string_view name) const override {
    for (const tenon::TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  // The values of a tensor, to be changed.
  std::vector<float>& values(std::string_view name) {
    return data_[static_cast<std::size_t>(find(name) - tensors_.data())];
  }
  void put(const std::string& name, std::vector<tenon::Dim> shape, std::vector<float> values) {
    const auto& kept = data_.emplace_back(std::move(values));
    tensors_.push_back(
        {name, tenon::F32::ggml_type, std::move(shape), std::as_bytes(std::span(kept))});
  }
  void remove(std::string_view name) {
    const auto at = find(name) - tensors_.data();
    tensors_.erase(tensors_.begin() + at);
    data_.erase(data_.begin() + at);
  }
  tenon::Metadata& edit_metadata() { return metadata_; }

 private:
  // Uniform in [-1, 1), from a linear congruential generator.
  float draw() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-31f;
  }
  void add(const tenon::ListedTensor& tensor) {
    std::size_t n = 1;
    for (const tenon::Dim size : tensor.shape) n *= static_cast<std::size_t>(size);
    std::vector<float> values(n);
    const float scale = 1.5f / std::sqrt(static_cast<float>(tensor.shape.back()));
    for (float& value : values) value = tensor.linear ? scale * draw() : 1 + 0.25f * draw();
    put(tensor.name, tensor.shape, std::move(values));
  }

  std::uint64_t state_ = 2026;
  tenon::Metadata metadata_;
  std::vector<tenon::TensorInfo> tensors_;
  std::deque<std::vector<float>> data_;
};

}  // namespace random_source
