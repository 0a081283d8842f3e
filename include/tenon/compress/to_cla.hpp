#pragma once
// Keys and values shared by neighbouring layers (arXiv 2405.12981).
#include <algorithm>
#include <utility>
#include <vector>

#include "key_values.hpp"

namespace tenon::inline TENON_ABI {

// Which projections the layers of a run share: those of the first, the owner, or their mean. The
// mean is closer to all of them, but on the models tried the owner's cost less: they stay what one
// layer at least was trained with.
enum class LayerPooling { owner, mean };

// A checkpoint in which every run of `factor` layers reads the keys and values that its first one
// computes: layer l uses those of factor * floor(l / factor). It is of the architecture "hybrid"
// (zoo::Hybrid); each layer keeps its queries, outputs and window, if it has one. The paper trains
// such models and finds that those made of others do not fully recover, so look at the receipt.
// Errors are on the vectors that each layer sees when `text` is given. Factor 1 changes no number.
// RequestError: a factor outside 1 to the number of layers. LoadError: no Llama.
inline Conversion to_cla(const TensorSource& source, int factor,
                         LayerPooling pooling = LayerPooling::owner,
                         const MixerInputs* text = nullptr) {
  using detail::Projection;
  const ConfigStorage storage(source);
  const ModelConfig config = storage.view();
  detail::need_llama(source, config, "to_cla");
  detail::check_text(text, config);
  const int layers = config.layers();
  if (factor < 1 || factor > layers) {
    fail<RequestError>("the number of layers that share keys and values must be 1 to ", layers,
                       ", all of them, it is ", factor, "; 2 loses least");
  }
  const bool windowed = SlidingWindow::fits(config, 0);
  Conversion out{EditedSource(source), {}};
  out.report.conversion = message("to_cla: ", factor, " layers share keys and values");
  out.report.on_text = text != nullptr;
  out.report.before = cache_cost(config);
  std::vector<std::uint64_t> owners;
  std::vector<LayerError> errors;
  for (int layer = 0; layer < layers; ++layer) {
    owners.push_back(static_cast<std::uint64_t>(layer - layer % factor));
    errors.push_back({layer, 0, 0});
  }
  for (int owner = 0; factor > 1 && owner < layers; owner += factor) {
    const int end = (std::min)(owner + factor, layers);
    const auto sizes = detail::AttentionSizes::read(config, owner);
    for (const std::string_view name : {"attn_k", "attn_v"}) {
      std::vector<Projection> run;
      for (int layer = owner; layer < end; ++layer) {
        run.push_back(detail::read_projection(source, layer, name, sizes.kv_heads * sizes.head_dim,
                                              config.width()));
      }
      Projection shared = run[0];
      if (pooling == LayerPooling::mean && run.size() > 1) {
        const auto count = static_cast<double>(run.size());
        const bool biased =
            std::any_of(run.begin(), run.end(), [](const auto& p) { return !p.bias.empty(); });
        if (biased) shared.bias.resize(static_cast<std::size_t>(shared.out));
        for (std::size_t i = 0; i < shared.weight.size(); ++i) {
          double sum = 0;
          for (const Projection& p : run) sum += static_cast<double>(p.weight[i]);
          shared.weight[i] = static_cast<float>(sum / count);
        }
        for (std::size_t i = 0; i < shared.bias.size(); ++i) {
          double sum = 0;
          for (const Projection& p : run) sum += p.shift(static_cast<Dim>(i));
          shared.bias[i] = static_cast<float>(sum / count);
        }
        detail::write_projection(out.source, owner, name, shared);
      }
      for (int layer = owner; layer < end; ++layer) {
        if (layer != owner) detail::remove_projection(out.source, layer, name);
        const Projection& own = run[static_cast<std::size_t>(layer - owner)];
        double error = 0;
        if (text != nullptr) {
          const auto x_owner = text->of(owner), x = text->of(layer);
          error = detail::relative_error(shared, own, &x_owner, &x);
        } else {
          error = detail::relative_error(shared, own, nullptr, nullptr);
        }
        auto& at = errors[static_cast<std::size_t>(layer)];
        (name == "attn_k" ? at.keys : at.values) = error;
      }
    }
  }
  if (factor > 1) out.report.layers = std::move(errors);
  out.source.set_architecture("hybrid");
  out.source.set("attention.kv_source", owners);
  out.source.set("attention.sliding_window_pattern",
                 std::vector<bool>(static_cast<std::size_t>(layers), windowed));
  out.report.after = cache_cost(out.source);
  return out;
}

}  // namespace tenon::inline TENON_ABI
