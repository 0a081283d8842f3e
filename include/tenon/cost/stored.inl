#pragma once
#include <algorithm>
#include <map>

#include "../io/ggml_types.hpp"
#include "stored.hpp"

namespace tenon::inline TENON_ABI::cost {

TENON_INLINE Storage storage_of(const TensorSource& file) {
  std::map<std::string_view, std::size_t> layers, experts;
  Storage storage;
  storage.tied = file.find("output.weight") == nullptr;
  for (const TensorInfo& tensor : file.tensors()) {
    const GgmlType* type = find_ggml_type(tensor.ggml_type);
    if (type == nullptr || tensor.shape.size() < 2) continue;
    const std::string_view name = tensor.name;
    if (name == "token_embd.weight") storage.embedding = type->name;
    if (name == "output.weight") storage.output = type->name;
    if (!name.starts_with("blk.")) continue;
    const bool expert = name.find("_exps.") != std::string_view::npos;
    (expert ? experts : layers)[type->name] += tensor.data.size();
  }
  const auto most = [](const std::map<std::string_view, std::size_t>& of) {
    const auto by_bytes = [](const auto& a, const auto& b) { return a.second < b.second; };
    return of.empty() ? std::string_view()
                      : std::max_element(of.begin(), of.end(), by_bytes)->first;
  };
  storage.weights = most(layers);
  storage.experts = most(experts);
  return storage;
}

}  // namespace tenon::inline TENON_ABI::cost
