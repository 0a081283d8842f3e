#pragma once
// How a session runs a model, apart from how much it holds.
#include <optional>
#include <string_view>

#include "../cache/row_cache.hpp"
#include "../core/executor.hpp"
#include "../kernels/activations.hpp"
#include "../kernels/isa.hpp"

namespace tenon::inline TENON_ABI {

struct SessionOptions {
  // Element format of the caches, by name ("f16"), or those of keys and values ("f16/q8_0"); empty:
  // the first that the model's type lists.
  std::string_view cache = {};
  // How block-quantized weights are multiplied: with activations rounded to int8, or exactly.
  Activations activations = Activations::int8;
  // Threads to run on; it must outlive the session. Null: the session makes its own team.
  Executor* executor = nullptr;
  int threads = 0;  // of that team; 0: as many as this process may use
};

// The limits themselves; RequestError naming the first that is out of range.
inline const Limits& check(const Limits& limits) {
  const auto within = [](std::string_view name, int value, int low, int high) {
    if (value >= low && value <= high) return;
    fail<RequestError>("Limits::", name, " must be ", low, " to ", high, ", it is ", value,
                       "; choose a value in this range");
  };
  within("seqs", limits.seqs, 1, 1 << 20);
  within("context", limits.context, 1, 1 << 28);
  within("step_tokens", limits.step_tokens, 1, 1 << 20);
  within("rollback", limits.rollback, 0, 1 << 20);
  within("pool_rows", limits.pool_rows, 0, 1 << 30);
  return limits;
}

namespace detail {
template <class Store>
int element_tag(std::string_view element) {
  const int tag = tag_of_name<typename Store::Formats>(element);
  if (tag < 0) {
    fail<RequestError>(
        "the cache's element format must be one of ", FormatList<typename Store::Formats>::names(),
        ", \"", printable(element),
        "\" was asked for; choose a listed one or compose the model with a cache that has it");
  }
  return tag;
}
}  // namespace detail

// The tags of the element formats named `elements` in a cache's list; RequestError when one is not
// listed.
template <class Store>
PlaneTags element_tags(std::string_view elements) {
  if (elements.empty()) return {0, 0};
  const std::size_t slash = elements.find('/');
  const int keys = detail::element_tag<Store>(elements.substr(0, slash));
  if (slash == elements.npos) return {keys, keys};
  return {keys, detail::element_tag<Store>(elements.substr(slash + 1))};
}

}  // namespace tenon::inline TENON_ABI
