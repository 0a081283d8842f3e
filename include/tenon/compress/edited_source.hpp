#pragma once
// A checkpoint made of another: the conversions edit it, a model type binds to it, write_gguf()
// writes it.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/memory.hpp"
#include "../io/tensor_source.hpp"
#include "../quant/dense.hpp"

namespace tenon::inline TENON_ABI {

// Metadata and tensors of `from`, each kept, replaced or removed. Kept tensors stay where they are,
// so the file they come from must outlive every source edited from it; what was replaced is shared
// by copies, so a source edited from an EditedSource does not need that one any more.
class EditedSource final : public TensorSource {
 public:
  explicit EditedSource(const TensorSource& from)
      : origin_(from.origin()), metadata_(from.metadata()), base_(&from) {
    if (const auto* edited = dynamic_cast<const EditedSource*>(&from)) {
      base_ = edited->base_;
      owned_ = edited->owned_;
    }
    tensors_.assign(from.tensors().begin(), from.tensors().end());
    index();
  }

  std::string_view origin() const override { return origin_; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    const auto at = by_name_.find(std::string(name));
    return at == by_name_.end() ? nullptr : &tensors_[at->second];
  }
  void done_with(std::span<const std::byte> part) const override {
    for (const auto& bytes : owned_) {
      if (part.data() >= bytes->data() && part.data() < bytes->data() + bytes->size()) return;
    }
    base_->done_with(part);
  }

  // Sets a key of any type that Metadata takes, "attention.head_count_kv", under the architecture.
  template <class T>
  void set(std::string_view key, T value) {
    metadata_.set(full_key(key), std::move(value));
  }
  // One value per layer.
  void set(std::string_view key, const std::vector<std::uint64_t>& values) {
    metadata_.set(full_key(key), MetaValue{MetaType::array, MetaType::u32, values});
  }
  void set(std::string_view key, const std::vector<bool>& values) {
    metadata_.set(full_key(key), MetaValue{MetaType::array, MetaType::boolean, values});
  }
  // Removes a key of the architecture; nothing when it is not there.
  void remove_key(std::string_view key) {
    const std::string gone = full_key(key);
    rewrite_metadata([&](const std::string& name) { return name == gone ? std::string() : name; });
  }
  // Names another architecture and moves the keys of the present one to it.
  void set_architecture(std::string_view name) {
    const std::string old = metadata_.text("general.architecture") + ".";
    rewrite_metadata([&](const std::string& key) {
      return key.starts_with(old) ? message(name, ".", std::string_view(key).substr(old.size()))
                                  : key;
    });
    metadata_.set("general.architecture", name);
  }

  // Replaces a tensor where it stands, or adds it at the end: f32, values of that shape. ShapeError
  // when their number is not the shape's.
  void replace(std::string_view name, std::vector<Dim> shape, std::span<const float> values) {
    std::size_t count = 1;
    for (const Dim size : shape) count = checked_multiply(count, static_cast<std::size_t>(size));
    if (count != values.size()) {
      fail<ShapeError>("tensor \"", printable(name), "\" ", shape_text(shape), " must be given ",
                       count, " values, it is given ", values.size(), "; pass those of its shape");
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(values.size_bytes());
    F32::encode(values.data(), static_cast<Dim>(values.size()), bytes->data());
    TensorInfo tensor{std::string(name), F32::ggml_type, std::move(shape), *bytes};
    owned_.push_back(std::move(bytes));
    const auto at = by_name_.find(tensor.name);
    if (at != by_name_.end()) {
      tensors_[at->second] = std::move(tensor);
    } else {
      by_name_.emplace(tensor.name, tensors_.size());
      tensors_.push_back(std::move(tensor));
    }
  }
  // Removes a tensor; nothing when it is not there.
  void remove(std::string_view name) {
    const auto at = by_name_.find(std::string(name));
    if (at == by_name_.end()) return;
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(at->second));
    index();
  }

 private:
  std::string full_key(std::string_view key) const {
    return message(metadata_.text("general.architecture"), ".", key);
  }
  // `rename` gives the name a key shall have, "" to remove it.
  template <class Rename>
  void rewrite_metadata(Rename&& rename) {
    Metadata rewritten;
    for (const Metadata::Entry& entry : metadata_.entries()) {
      std::string key = rename(entry.key);
      if (!key.empty()) rewritten.set(std::move(key), entry.value);
    }
    metadata_ = std::move(rewritten);
  }
  void index() {
    by_name_.clear();
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  }

  std::string origin_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> owned_;
  const TensorSource* base_;
};

}  // namespace tenon::inline TENON_ABI
