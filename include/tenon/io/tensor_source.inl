#pragma once
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::string shape_text(std::span<const Dim> shape) {
  std::string text = "[";
  for (const Dim size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

TENON_INLINE TensorIndex::TensorIndex(std::span<const TensorInfo> tensors,
                                      std::string_view origin) {
  by_name_.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    if (!by_name_.emplace(tensor.name, &tensor).second) {
      fail<LoadError>(origin, ": tensor names must be distinct, \"", printable(tensor.name),
                      "\" stands there twice; the file is damaged, download or convert it again");
    }
    constexpr std::size_t by_chance = 64;  // a million honest names share a bucket by tens
    if (by_name_.bucket_size(by_name_.bucket(tensor.name)) > by_chance) {
      fail<LoadError>(origin, ": tensor names must have distinct hashes, more than ", by_chance,
                      " share that of \"", printable(tensor.name),
                      "\"; the file was made to slow its reader down, do not use it");
    }
  }
}

TENON_INLINE const TensorInfo* TensorIndex::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

}  // namespace tenon::inline TENON_ABI
