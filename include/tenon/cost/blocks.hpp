#pragma once
// A step block by block: what each kind of block costs, of all layers that have it together.
#include <string_view>

#include "step.hpp"

namespace tenon::inline TENON_ABI::cost {

struct BlockCost {
  std::string_view name;
  Dim layers = 0;
  Dim flops = 0;
  double bytes = 0;
  constexpr double intensity() const { return static_cast<double>(flops) / bytes; }
};

namespace detail {
// The model that has only `layer`, `count` times.
constexpr ModelSizes only(const ModelSizes& m, const LayerSizes& layer, Dim count) {
  ModelSizes one;
  one.width = m.width;
  one.weights = m.weights;
  one.add(layer, count);
  return one;
}
// How many layers are like that of group i by `same`; 0 where an earlier group is, too.
template <class Same>
constexpr Dim alike(const ModelSizes& m, int i, Same same) {
  const auto layer = [&](int j) -> const LayerSizes& {
    return m.groups[static_cast<std::size_t>(j)].layer;
  };
  Dim count = 0;
  for (int j = 0; j < m.size; ++j) {
    if (!same(layer(i), layer(j))) continue;
    if (j < i) return 0;
    count += m.groups[static_cast<std::size_t>(j)].count;
  }
  return count;
}
}  // namespace detail

// Calls fn(BlockCost) for each kind of projections, attention (with `state`, recurrent layers) and
// feed-forward, for norms and what stands before the layers, and for the unembedding. They sum to
// flops() and traffic().
template <class Fn>
constexpr void each_block(const ModelSizes& m, const Step& step, Fn&& fn) {
  const auto linear = [&](std::string_view name, const ModelSizes& part, Dim layers) {
    const BlockCost block{name, layers, flops(part, step).linear, traffic(part, step).linear};
    if (block.bytes > 0) fn(block);
  };
  for (int i = 0; i < m.size; ++i) {
    const LayerSizes& layer = m.groups[static_cast<std::size_t>(i)].layer;
    LayerSizes part;
    part.mixer = layer.mixer;
    Dim n = detail::alike(
        m, i, [](const LayerSizes& a, const LayerSizes& b) { return a.mixer == b.mixer; });
    if (n > 0) linear("projections", detail::only(m, part, n), n);
    // Whether a layer owns the rows it reads makes no difference to reading them.
    n = detail::alike(m, i, [](const LayerSizes& a, const LayerSizes& b) {
      return a.mixer.pair_flops == b.mixer.pair_flops &&
             a.mixer.state_values == b.mixer.state_values && a.cache.reach == b.cache.reach &&
             a.cache.first == b.cache.first && a.cache.row_bytes == b.cache.row_bytes;
    });
    if (n > 0) {
      part.cache = layer.cache;
      const ModelSizes all = detail::only(m, part, n);
      const BlockCost block{layer.mixer.state_values > 0 ? "state" : "attention", n,
                            flops(all, step).attention, traffic(all, step).attention};
      if (block.bytes > 0) fn(block);
    }
    n = detail::alike(m, i, [](const LayerSizes& a, const LayerSizes& b) {
      return a.feed_forward == b.feed_forward;
    });
    part = {};
    part.feed_forward = layer.feed_forward;
    if (n > 0) {
      linear(layer.feed_forward.experts > 0 ? "experts" : "feed-forward", detail::only(m, part, n),
             n);
    }
  }
  ModelSizes rest;
  rest.width = m.width;
  rest.weights = m.weights;
  rest.input = m.input;
  rest.output_norm = m.output_norm;
  for (int i = 0; i < m.size; ++i) {
    LayerSizes part;
    part.residual = m.groups[static_cast<std::size_t>(i)].layer.residual;
    rest.add(part, m.groups[static_cast<std::size_t>(i)].count);
  }
  linear("norms and input", rest, m.layers());
  fn(BlockCost{"unembedding", 1, flops(m, step).unembedding, traffic(m, step).unembedding});
}

}  // namespace tenon::inline TENON_ABI::cost
