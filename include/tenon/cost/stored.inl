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

TENON_INLINE void average_mixtures(ModelSizes& sizes, const TensorSource& file) {
  struct Sum {
    Dim values = 0, bytes = 0;
    int type = -1;
    bool mixed = false;
  } layers, experts;
  for (const TensorInfo& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (tensor.shape.size() < 2 || !name.starts_with("blk.") || name.ends_with(".bias")) continue;
    Sum& of = name.find("_exps.") == std::string_view::npos ? layers : experts;
    Dim values = 1;
    for (const Dim n : tensor.shape) values = exact_product(values, n);
    of.values = exact_sum(of.values, values);
    of.bytes = exact_sum(of.bytes, static_cast<Dim>(tensor.data.size()));
    of.mixed = of.mixed || (of.type >= 0 && of.type != tensor.ggml_type);
    of.type = tensor.ggml_type;
  }
  constexpr Dim block = 1024;
  const auto average = [](Element& element, const Sum& of) {
    if (!of.mixed || of.values == 0) return;
    element = {block, (exact_product(block, of.bytes) + of.values / 2) / of.values};
  };
  average(sizes.weights.matrices, layers);
  average(sizes.weights.experts, experts);
}

}  // namespace tenon::inline TENON_ABI::cost
