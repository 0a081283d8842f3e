#pragma once
// The key and value projections of a checkpoint as floats, and how far two of them are apart.
#include <cmath>
#include <string>
#include <vector>

#include "../cache/contiguous.hpp"
#include "../mixer/gqa.hpp"
#include "../model/config_storage.hpp"
#include "../quant/gguf_formats.hpp"
#include "conversion.hpp"
#include "mixer_inputs.hpp"

namespace tenon::inline TENON_ABI::detail {

// y = W x + b, W [out, in] row-major, b [out] or empty.
struct Projection {
  Dim out = 0, in = 0;
  std::vector<float> weight, bias;

  const float* row(Dim i) const { return weight.data() + i * in; }
  float* row(Dim i) { return weight.data() + i * in; }
  double shift(Dim i) const {
    return bias.empty() ? 0.0 : static_cast<double>(bias[static_cast<std::size_t>(i)]);
  }
  // Row i applied to x [in].
  double apply(Dim i, const float* x) const {
    double sum = shift(i);
    const float* w = row(i);
    for (Dim k = 0; k < in; ++k) {
      sum = std::fma(static_cast<double>(w[k]), static_cast<double>(x[k]), sum);
    }
    return sum;
  }
};

inline Projection zeros(Dim out, Dim in, bool biased) {
  Projection p{out, in, {}, {}};
  p.weight.resize(checked_multiply(static_cast<std::size_t>(out), static_cast<std::size_t>(in)));
  if (biased) p.bias.resize(static_cast<std::size_t>(out));
  return p;
}

inline std::string in_layer(int layer, std::string_view name) {
  return message("blk.", layer, ".", name);
}

// The values of a tensor of that shape. LoadError when it is missing or not finite, ShapeError when
// it is stored otherwise.
inline std::vector<float> read_tensor(const TensorSource& source, const std::string& name,
                                      const std::vector<Dim>& shape) {
  const TensorInfo* tensor = source.find(name);
  if (tensor == nullptr) {
    fail<LoadError>(source.origin(), ": tensor ", name,
                    " must be there to be converted, the file has none of that name; convert a "
                    "model whose layers keep keys and values apart");
  }
  if (tensor->shape != shape) {
    fail<ShapeError>(source.origin(), ": tensor ", name, " must have shape ", shape_text(shape),
                     " by the metadata, the file has ", shape_text(tensor->shape),
                     "; metadata and tensors do not belong together");
  }
  const int tag = tag_of_ggml_type<GgufFormats>(tensor->ggml_type);
  if (tag < 0) {
    fail<ShapeError>(source.origin(), ": tensor ", name, " must be stored as one of ",
                     FormatList<GgufFormats>::names(), " to be converted, it is of ggml type ",
                     tensor->ggml_type, "; convert a less quantized file");
  }
  const Dim columns = shape.back();
  const Dim rows = shape.size() == 1 ? 1 : shape[0];
  std::vector<float> values(
      checked_multiply(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)));
  FormatList<GgufFormats>::visit(tag, [&]<class F>(F) {
    for (Dim r = 0; r < rows; ++r) {
      decode_part<F>(tensor->data.data() + static_cast<std::size_t>(r) * row_bytes<F>(columns), 0,
                     columns, values.data() + r * columns);
    }
  });
  for (const float value : values) {
    if (std::isfinite(value)) continue;
    fail<LoadError>(source.origin(), ": tensor ", name, " must hold finite values, one is ", value,
                    "; the file is damaged");
  }
  return values;
}

// "attn_k" of a layer, with its bias when it has one.
inline Projection read_projection(const TensorSource& source, int layer, std::string_view name,
                                  Dim out, Dim in) {
  Projection p{out, in, {}, {}};
  p.weight = read_tensor(source, in_layer(layer, message(name, ".weight")), {out, in});
  const std::string bias = in_layer(layer, message(name, ".bias"));
  if (source.find(bias) != nullptr) p.bias = read_tensor(source, bias, {out});
  return p;
}
inline void write_projection(EditedSource& to, int layer, std::string_view name,
                             const Projection& p) {
  to.replace(in_layer(layer, message(name, ".weight")), {p.out, p.in}, p.weight);
  if (!p.bias.empty()) to.replace(in_layer(layer, message(name, ".bias")), {p.out}, p.bias);
}
inline void remove_projection(EditedSource& from, int layer, std::string_view name) {
  from.remove(in_layer(layer, message(name, ".weight")));
  from.remove(in_layer(layer, message(name, ".bias")));
}

// Relative error of `is` for `was`: of the outputs on vectors [tokens, in] of each, or, without
// them, of weights and biases.
inline double relative_error(const Projection& is, const Projection& was,
                             const MatView<const float>* x_is, const MatView<const float>* x_was) {
  double difference = 0, reference = 0;
  const auto add = [&](double a, double b) {
    difference = std::fma(a - b, a - b, difference);
    reference = std::fma(b, b, reference);
  };
  if (x_is != nullptr) {
    for (Dim t = 0; t < x_was->extent(0); ++t) {
      for (Dim i = 0; i < was.out; ++i) add(is.apply(i, x_is->row(t)), was.apply(i, x_was->row(t)));
    }
  } else {
    for (std::size_t i = 0; i < was.weight.size(); ++i) {
      add(static_cast<double>(is.weight[i]), static_cast<double>(was.weight[i]));
    }
    for (Dim i = 0; i < was.out; ++i) add(is.shift(i), was.shift(i));
  }
  if (difference == 0) return 0;
  return std::sqrt(difference / reference);
}
inline double relative_error(const Projection& is, const Projection& was, const MixerInputs* text,
                             int layer) {
  if (text == nullptr) return relative_error(is, was, nullptr, nullptr);
  const auto x = text->of(layer);
  return relative_error(is, was, &x, &x);
}

// The attention of a layer as GGUF's keys describe it, whatever its mask and positions.
using AttentionSizes = Gqa<GqaSpec{}, Causal, NoRope, Contiguous<F32>>::Config;

// The layer whose keys and values this one reads; -1 when that is no earlier one.
inline int owner_of(const ModelConfig& config, int layer) {
  if (!config.has("attention.kv_source")) return layer;
  const double owner = config.number("attention.kv_source", layer);
  const bool whole = owner >= 0 && owner <= layer && owner == static_cast<int>(owner);
  return whole ? static_cast<int>(owner) : -1;
}

// RequestError unless the vectors are of such a model.
inline void check_text(const MixerInputs* text, const ModelConfig& config) {
  if (text == nullptr) return;
  bool same = text->layers() == config.layers() && text->width() == config.width();
  for (int layer = 0; same && layer < text->layers(); ++layer) {
    same = text->tokens() > 0 && text->tokens_of(layer) == text->tokens();
  }
  if (same) return;
  fail<RequestError>(
      "recorded inputs must be those of the model to convert, ", config.layers(),
      " layers of width ", config.width(), ", they are of ", text->layers(), " layers of width ",
      text->width(), " on ", text->tokens(),
      " tokens, or not the same for all; record them with a model bound to the same file");
}

// LoadError unless it is a Llama with dense feed-forward layers.
inline void need_llama(const TensorSource& source, const ModelConfig& config,
                       std::string_view conversion) {
  if (config.architecture == "llama" && config.number_or("expert_count", 0) == 0) return;
  fail<LoadError>(source.origin(), ": ", conversion,
                  " needs the architecture \"llama\" without experts, this is \"",
                  printable(config.architecture), "\"",
                  config.has("expert_count") ? " with experts" : "",
                  "; the converted model would need a type that there is not");
}

}  // namespace tenon::inline TENON_ABI::detail

namespace tenon::inline TENON_ABI {

// The cache of a checkpoint's model: per layer that owns its rows, two times kv_heads x head_dim
// values, or of latent attention kv_rank + rope_dim (arXiv 2405.04434); layers with a window hold
// `window` and `sinks` rows.
inline CacheCost cache_cost(const ModelConfig& config) {
  constexpr std::size_t value_bytes = 2;
  const auto size = [](Dim n) { return static_cast<std::size_t>(n); };
  std::size_t per_token = 0, fixed = 0;
  const int layers = config.layers();
  for (int layer = 0; layer < layers; ++layer) {
    if (detail::owner_of(config, layer) != layer) continue;
    std::size_t row = value_bytes;
    if (config.has("attention.kv_lora_rank")) {
      row *= size(config.size("attention.kv_lora_rank") + config.size("rope.dimension_count"));
    } else {
      const auto sizes = detail::AttentionSizes::read(config, layer);
      row = checked_multiply(2 * row, size(sizes.kv_heads * sizes.head_dim));
    }
    const bool windowed = SlidingWindow::fits(config, layer) &&
                          (!config.has("attention.sliding_window_pattern") ||
                           config.number_or_flag("attention.sliding_window_pattern", layer) != 0);
    if (windowed) {
      const auto mask = SlidingWindow::read(config, layer);
      fixed = checked_add(fixed, checked_multiply(row, size(Dim{mask.window} + mask.sinks)));
    } else {
      per_token = checked_add(per_token, row);
    }
  }
  return {static_cast<Dim>(per_token), static_cast<Dim>(fixed)};
}
inline CacheCost cache_cost(const TensorSource& source) {
  return cache_cost(ConfigStorage(source).view());
}

}  // namespace tenon::inline TENON_ABI
