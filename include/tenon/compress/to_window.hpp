#pragma once
// A window and attention sinks for a model with full attention.
#include "key_values.hpp"

namespace tenon::inline TENON_ABI {

// A checkpoint whose every layer sees the last `window` tokens (arXiv 2310.06825) and, besides, the
// first `sinks` (arXiv 2309.17453). Only metadata changes; the file then binds to a type with a
// SlidingWindow. A window that no sequence exceeds changes no bit.
// StreamingLLM rotates keys by their place in the cache; this mask keeps their places in the text,
// so queries look back as far as the text is long, which is within what the model was trained for
// only up to its trained context.
// RequestError: a window below 1, sinks below 0, or more than 2^30 of either. LoadError: no Llama.
inline Conversion to_window(const TensorSource& source, int window, int sinks) {
  const ConfigStorage storage(source);
  const ModelConfig config = storage.view();
  detail::need_llama(source, config, "to_window");
  constexpr int most = 1 << 30;
  if (window < 1 || sinks < 0 || window > most || sinks > most) {
    fail<RequestError>("the window must be 1 to ", most, " tokens and the sinks 0 to ", most,
                       ", they are ", window, " and ", sinks, "; choose values in these ranges");
  }
  Conversion out{EditedSource(source), {}};
  out.report.conversion = message("to_window: ", window, " tokens, ", sinks, " sinks");
  out.report.before = cache_cost(config);
  out.source.set("attention.sliding_window", static_cast<std::uint32_t>(window));
  out.source.remove_key("attention.sink_count");
  if (sinks > 0) out.source.set("attention.sink_count", static_cast<std::uint32_t>(sinks));
  out.report.after = cache_cost(out.source);
  return out;
}

}  // namespace tenon::inline TENON_ABI
