#pragma once
// The cost of a composed model: its type and a configuration become the numbers of ModelSizes.
#include <array>
#include <string_view>

#include "../model/plan.hpp"
#include "../quant/any_of.hpp"
#include "model_sizes.hpp"

namespace tenon::inline TENON_ABI::cost {

// What a type leaves open and a file or a session decides. Formats by name ("q4_k"); empty: the
// first of the type's list, and for experts, embedding and output what `weights` is.
struct Storage {
  std::string_view weights{}, experts{}, embedding{}, output{};
  std::string_view keys{}, values{};  // of the cache; empty values: as keys
  bool tied = false;                  // the file has no output matrix
};

namespace detail {
template <class List>
constexpr Element element_named(std::string_view name, std::string_view of) {
  const int tag = name.empty() ? 0 : tag_of_name<List>(name);
  if (tag < 0) {
    fail<RequestError>("the format of the ", of, " must be one of the model type's, it is \"",
                       printable(name), "\"; choose one of ", FormatList<List>::names());
  }
  return FormatList<List>::visit(tag, []<class F>(F) { return element_of<F>(); });
}
template <class Cache>
constexpr Dim page_rows_of() {
  if constexpr (requires { Cache::page_rows; }) {
    return Cache::page_rows;
  } else {
    return 0;
  }
}
// What bind() says of a size that a type pins to another number.
constexpr void check_pin(const ModelConfig& config, const Pin& pin) {
  if (pin.holds()) return;
  fail<ShapeError>("metadata key \"", config.architecture, ".", pin.key, "\" must be ", pin.pinned,
                   " as this model type pins it, it is ", pin.found,
                   "; use the type that takes its sizes from the checkpoint");
}
struct RowElements {
  Element keys, values;
};
template <class List>
constexpr RowElements row_elements(const Storage& in) {
  const Element keys = element_named<List>(in.keys, "keys");
  return {keys, in.values.empty() ? keys : element_named<List>(in.values, "values")};
}
}  // namespace detail

// The sizes of a Decoder with this configuration; constexpr where the configuration is. A window
// counts the rows it sees; a session's Ring keeps those of its largest step besides
// (Decoder::cache_bytes). LoadError or ShapeError name the key that is missing or does not fit,
// RequestError the format that the type does not have.
template <class D>
constexpr ModelSizes sizes_of(const ModelConfig& config, const Storage& in = {}) {
  using Weights = typename D::formats;
  const auto weights = [&](std::string_view name, std::string_view of) {
    return detail::element_named<Weights>(name.empty() ? in.weights : name, of);
  };
  detail::check_pin(config, {"embedding_length", D::spec.width, config.width()});
  detail::check_pin(config, {"block_count", D::spec.layers, config.layers()});
  detail::check_pin(config, {"vocab_size", D::spec.vocab, config.vocab()});
  ModelSizes sizes;
  sizes.width = config.width();
  sizes.vocab = config.vocab();
  sizes.tied = in.tied;
  sizes.output_norm.vectors = sizes.width;
  sizes.weights = {weights({}, "weights"), weights(in.experts, "experts"),
                   weights(in.embedding, "embedding"), weights(in.output, "output"), elements::f32};
  if constexpr (requires { D::input::numbers(config); }) {
    const InputNumbers input = D::input::numbers(config);
    sizes.input = input.values;
    sizes.looked_up = input.looked_up;
  }
  // What is the same for all layers of a kind is found once: compilers limit the steps of a
  // constant expression.
  std::array<CacheSizes, static_cast<std::size_t>(D::kinds::size)> caches{};
  std::array<detail::RowElements, static_cast<std::size_t>(D::kinds::size)> rows{};
  std::array<bool, static_cast<std::size_t>(D::kinds::size)> seen{}, pinned{};
  const int layers = config.layers();
  for (int i = 0; i < layers; ++i) {
    const LayerRef ref = D::plan.at(i, config);
    if (ref.kind < 0 || ref.kind >= D::kinds::size || ref.source < 0 || ref.source > i) {
      fail<LoadError>("the layer plan of architecture \"", config.architecture,
                      "\" must name a kind that there is and an earlier layer, layer ", i,
                      " has kind ", ref.kind, " and source ", ref.source, "; correct the plan");
    }
    D::kinds::visit(ref.kind, [&](auto kind) {
      using Block = typename D::kinds::template At<kind>;
      using Cache = typename Block::Mixer::Store;
      constexpr auto k = static_cast<std::size_t>(kind);
      if (!seen[k]) {
        rows[k] = detail::row_elements<typename Cache::Formats>(in);
        caches[k].page_rows = detail::page_rows_of<Cache>();
        caches[k].store = D::kinds::template store_of<kind>;
      }
      if (!seen[k] || pinned[k]) {
        Block::each_pin(config, i, [&](const Pin& pin) {
          pinned[k] = pinned[k] || pin.pinned != dyn;
          detail::check_pin(config, pin);
        });
      }
      seen[k] = true;
      const bool owns = ref.source == i;
      const LayerNumbers n = Block::numbers(config, i, sizes.width, owns);
      CacheSizes cache = caches[k];
      cache.row_bytes = exact_sum(rows[k].keys.bytes_of(n.keys), rows[k].values.bytes_of(n.values));
      cache.owns = owns;
      cache.reach = n.reach;
      cache.first = n.first;
      sizes.add({n.mixer, n.feed_forward, n.residual, cache});
    });
  }
  return sizes;
}

}  // namespace tenon::inline TENON_ABI::cost
