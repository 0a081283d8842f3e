#pragma once
// The cost of a checkpoint's model whose type is chosen at run time.
#include <optional>

#include "../core/fixed_string.hpp"
#include "composition.hpp"

namespace tenon::inline TENON_ABI {
template <FixedString Architecture, class... Models>
struct Entry;
template <class... Entries>
struct Registry;  // both of model/registry.hpp, which who has one includes
}  // namespace tenon::inline TENON_ABI

namespace tenon::inline TENON_ABI::cost {

namespace detail {
template <class E>
struct SizesOfEntry;
template <FixedString Architecture, class... Models>
struct SizesOfEntry<Entry<Architecture, Models...>> {
  static std::optional<ModelSizes> sizes(const ModelConfig& config, const Storage& in) {
    std::optional<ModelSizes> found;
    if (Architecture.view() != config.architecture) return found;
    static_cast<void>(
        ((Models::accepts(config) && (found = sizes_of<Models>(config, in), true)) || ...));
    return found;
  }
};
template <class R>
struct SizesOfRegistry;
template <class... Entries>
struct SizesOfRegistry<Registry<Entries...>> {
  static std::optional<ModelSizes> sizes(const ModelConfig& config, const Storage& in) {
    std::optional<ModelSizes> found;
    static_cast<void>(((found = SizesOfEntry<Entries>::sizes(config, in)).has_value() || ...));
    return found;
  }
};
}  // namespace detail

// The same of the first model of a Registry that accepts the configuration. LoadError when none
// does.
template <class R>
ModelSizes sizes_in(const ModelConfig& config, const Storage& in = {}) {
  const std::optional<ModelSizes> found = detail::SizesOfRegistry<R>::sizes(config, in);
  if (!found) {
    fail<LoadError>("the architecture must be one of ", R::names(),
                    " with sizes that its types take, it is \"", printable(config.architecture),
                    "\"; add an Entry for it to the program's Registry");
  }
  return *found;
}

}  // namespace tenon::inline TENON_ABI::cost
