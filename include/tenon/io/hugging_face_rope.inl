#pragma once
// The rotations that configurations of Hugging Face checkpoints ask for, in the keys of GGUF.
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "../core/metadata.hpp"
#include "hugging_face_config.inl"
#include "hugging_face_rules.inl"

namespace tenon::inline TENON_ABI::detail {

// A model as its configuration describes it.
struct Family {
  ModelRules rules;
  Metadata metadata;
  Dim layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  Dim experts = 0;       // 0: none
  Dim extra_layers = 0;  // after the last one, which predict further tokens; left out
  bool tied = false;
  bool qkv_bias = false, o_bias = false;
  std::vector<std::pair<std::string, std::vector<float>>> vectors;  // tensors made of numbers

  std::string key(std::string_view name) const { return message(rules.architecture, ".", name); }
  void set(std::string_view name, Dim value) {
    metadata.set(key(name), static_cast<std::uint32_t>(value));
  }
  void set(std::string_view name, double value) {
    metadata.set(key(name), static_cast<float>(value));
  }
  void set(std::string_view name, bool value) { metadata.set(key(name), value); }
  void set(std::string_view name, const char* value) { metadata.set(key(name), value); }
};

// Llama 3's divisors of the frequencies base^(-2i / turned) [turned / 2]: those of wavelengths
// above original / low are divided by the factor, those below original / high kept, between them
// blended.
inline std::vector<float> llama3_divisors(JsonConfig& scaling, double base, Dim turned) {
  const double factor = scaling.number("factor"), low = scaling.number("low_freq_factor"),
               high = scaling.number("high_freq_factor"),
               original = scaling.number("original_max_position_embeddings");
  if (!(factor > 0 && low > 0 && high > low && original > 0)) {
    fail<LoadError>(scaling.origin(),
                    ": factor, low_freq_factor < high_freq_factor and "
                    "original_max_position_embeddings must be positive, they are ",
                    factor, ", ", low, ", ", high, " and ", original,
                    "; download the checkpoint again");
  }
  std::vector<float> divisors;
  for (Dim i = 0; i < turned / 2; ++i) {
    const double angle = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(turned));
    const double turns = original * angle / (2 * std::numbers::pi);  // within the original context
    double divisor = turns > high ? 1 : factor;
    if (turns >= low && turns <= high) {
      const double kept = (turns - low) / (high - low);
      divisor = 1 / std::fma(1 - kept, 1 / factor, kept);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

// YaRN's numbers. `logits`: its temperature is on attention logits, as in DeepSeek's models.
inline void read_yarn(JsonConfig& scaling, Family& f, Dim context, bool logits) {
  const double factor = scaling.number("factor");
  f.set("rope.scaling.type", "yarn");
  f.set("rope.scaling.factor", factor);
  f.set("rope.scaling.original_context_length",
        scaling.size_or("original_max_position_embeddings", context));
  f.set("rope.scaling.yarn_beta_fast", scaling.number_or("beta_fast", 32));
  f.set("rope.scaling.yarn_beta_slow", scaling.number_or("beta_slow", 1));
  if (!scaling.flag_or("truncate", true)) f.set("rope.scaling.yarn_truncate", false);
  const double one = scaling.number_or("mscale", 0), all = scaling.number_or("mscale_all_dim", 0);
  const auto magnitude = [&](double x) {
    return factor <= 1 ? 1.0 : std::fma(0.1 * x, std::log(factor), 1.0);
  };
  if (logits) {
    if (one != all && all != 0) {
      scaling.wrong("mscale", "equal to mscale_all_dim", one);
    }
    f.set("rope.scaling.yarn_log_multiplier", 0.1 * all);
    scaling.must_be("attention_factor", {1.0});
    return;
  }
  // What the sines and cosines are multiplied by, over what they are without being told.
  double wanted = one != 0 && all != 0 ? magnitude(one) / magnitude(all) : magnitude(1);
  wanted = scaling.number_or("attention_factor", wanted);
  if (wanted != magnitude(1)) f.set("rope.scaling.attn_factor", wanted / magnitude(1));
}

// Phi-3's two lists of divisors; `context` is that of the whole model.
inline void read_longrope(JsonConfig& scaling, Family& f, Dim context, Dim original, Dim turned) {
  original = scaling.size_or("original_max_position_embeddings", original);
  f.set("rope.scaling.type", "longrope");
  f.set("rope.scaling.original_context_length", original);
  for (const char* length : {"long", "short"}) {
    const std::string key = message(length, "_factor");
    std::vector<float> factors = scaling.floats(key);
    if (static_cast<Dim>(factors.size()) != turned / 2) {
      scaling.wrong(key, message("a list of ", turned / 2, " numbers"), factors.size());
    }
    f.vectors.emplace_back(message("rope_factors_", length, ".weight"), std::move(factors));
  }
  const double times = static_cast<double>(context) / static_cast<double>(original);
  double wanted =
      times <= 1 ? 1 : std::sqrt(1 + std::log(times) / std::log(static_cast<double>(original)));
  wanted = scaling.number_or("attention_factor", wanted);
  f.set("rope.scaling.attn_factor", wanted);
}

struct RopeReading {
  double base = 10000;  // when the file does not say
  Dim context = 0, original = 0;
  Dim turned = 0;
  bool logits = false, longrope = false;
};
// rope_theta and rope_scaling, or rope_parameters, which newer files have in their place.
inline void read_rope(JsonConfig& c, Family& f, const RopeReading& r) {
  double base = c.number_or("rope_theta", r.base);
  const bool joined = c.has("rope_parameters");
  const bool scaled = joined || c.has("rope_scaling");
  if (!scaled) return f.set("rope.freq_base", base);
  JsonConfig scaling = c.object(joined ? "rope_parameters" : "rope_scaling");
  base = scaling.number_or("rope_theta", base);
  if (!(base > 1)) scaling.wrong("rope_theta", "above 1", base);
  f.set("rope.freq_base", base);
  const std::string old = scaling.text_or("type", scaling.has("factor") ? "" : "default");
  const std::string type = scaling.text_or("rope_type", old);
  if (type == "linear") {
    f.set("rope.scaling.type", "linear");
    f.set("rope.scaling.factor", scaling.number("factor"));
  } else if (type == "llama3") {
    f.vectors.emplace_back("rope_freqs.weight", llama3_divisors(scaling, base, r.turned));
  } else if (type == "yarn") {
    read_yarn(scaling, f, r.context, r.logits);
  } else if ((type == "longrope" || type == "su") && r.longrope) {
    read_longrope(scaling, f, r.context, r.original, r.turned);
  } else if (type != "default") {
    scaling.wrong("rope_type",
                  r.longrope ? "default, linear, yarn, llama3 or longrope"
                             : "default, linear, yarn or llama3",
                  type);
  }
  scaling.refuse_unread({"finetuned"});
}

}  // namespace tenon::inline TENON_ABI::detail
