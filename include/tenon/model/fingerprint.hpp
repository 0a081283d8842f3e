#pragma once
// What makes cached rows mean something, as one number: the configuration, the rows of each layer,
// its rotations and the weights.
#include <algorithm>
#include <vector>

#include "../core/checksum.hpp"
#include "../core/config.hpp"
#include "../core/stored_bytes.hpp"

namespace tenon::inline TENON_ABI {

// A tensor of a checkpoint as one number: name, format, shape, and its bytes, of large ones 16
// samples of 64 spread evenly over them, so that it costs nothing beside packing.
template <class Tensor>
std::uint64_t tensor_digest(const Tensor& tensor) {
  constexpr std::size_t samples = 16, each = 64;
  const StoredBytes bytes = tensor.data;
  Checksum sum;
  sum.add(std::string_view(tensor.name));
  sum.add(tensor.ggml_type);
  for (const Dim size : tensor.shape) sum.add(size);
  if (tensor.shape.size() < 2 || bytes.size() <= samples * each) {
    std::vector<std::byte> made(bytes.made() ? bytes.size() : 0);
    sum.add(bytes.made() ? bytes.read(0, made) : std::span<const std::byte>(bytes));
  } else {
    const std::size_t stride = (bytes.size() - each) / (samples - 1);
    std::byte made[each];
    for (std::size_t i = 0; i < samples; ++i) sum.add(bytes.read(i * stride, made));
  }
  return sum.value();
}

// The fingerprint of a bound model whose tensors' digests were added to `weights`.
template <class Kinds, class Bound>
std::uint64_t fingerprint(const ModelConfig& config, const Bound& bound, Checksum weights) {
  Checksum& sum = weights;
  sum.add(config.architecture);
  for (const ConfigEntry& entry : config.entries) {
    sum.add(entry.key);
    sum.add(entry.number);
    sum.add(std::uint64_t{entry.layers.size()});
    sum.add(std::as_bytes(entry.layers));
    sum.add(entry.text);
    sum.add(entry.is_flag);
  }
  sum.add(std::uint64_t{bound.layers.size()});
  for (const auto& layer : bound.layers) {
    sum.add(layer.slot.owns);
    if (!layer.slot.owns) continue;
    Kinds::visit(layer.kind, [&](auto k) {
      constexpr auto store = static_cast<std::size_t>(Kinds::template store_of<k>);
      const auto& rows = bound.slots[store][static_cast<std::size_t>(layer.slot.index)];
      for (const Dim width : rows.widths) sum.add(width);
      sum.add(rows.reach);
      sum.add(rows.first);
    });
  }
  for (const auto& rotary : bound.rotaries) {
    sum.add(rotary.pairing);
    sum.add(rotary.magnitude);
    sum.add(std::uint64_t{rotary.radians.size()});
    sum.add(std::as_bytes(std::span(rotary.radians)));
  }
  return sum.value();
}

}  // namespace tenon::inline TENON_ABI
