#pragma once
// The rotations that configurations of Hugging Face checkpoints ask for, in the keys of GGUF.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>
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
struct Llama3Scaling {
  double factor = 8, low = 1, high = 4, original = 8192;
};
inline std::vector<float> llama3_divisors(const Llama3Scaling& by, double base, Dim turned) {
  std::vector<float> divisors;
  for (Dim i = 0; i < turned / 2; ++i) {
    const double angle = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(turned));
    // Within the original context.
    const double turns = by.original * angle / (2 * std::numbers::pi);
    double divisor = turns > by.high ? 1 : by.factor;
    if (turns >= by.low && turns <= by.high) {
      const double kept = (turns - by.low) / (by.high - by.low);
      divisor = 1 / std::fma(1 - kept, 1 / by.factor, kept);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}
inline Llama3Scaling read_llama3(JsonConfig& scaling) {
  const Llama3Scaling by{scaling.positive("factor"), scaling.positive("low_freq_factor"),
                         scaling.positive("high_freq_factor"),
                         scaling.positive("original_max_position_embeddings")};
  if (!(by.high > by.low)) {
    scaling.damaged("high_freq_factor", message("above low_freq_factor = ", by.low), by.high);
  }
  return by;
}
// The scaling that makes these divisors, where it has the numbers of all that were published but
// for the factor and an original context of a power of two; else none.
inline std::optional<Llama3Scaling> llama3_scaling_of(std::span<const float> divisors,
                                                      double base) {
  if (divisors.empty()) return std::nullopt;
  constexpr double shortest = 16, longest = 1 << 24;
  Llama3Scaling by{.factor = static_cast<double>(divisors.back())};  // of the longest wave
  for (by.original = shortest; by.original <= longest; by.original *= 2) {
    const auto made = llama3_divisors(by, base, static_cast<Dim>(2 * divisors.size()));
    if (std::equal(made.begin(), made.end(), divisors.begin())) return by;
  }
  return std::nullopt;
}

// YaRN's numbers. `logits`: its temperature is on attention logits, as in DeepSeek's models.
inline void read_yarn(JsonConfig& scaling, Family& f, Dim context, bool logits) {
  const double factor = scaling.positive("factor");
  f.set("rope.scaling.type", "yarn");
  f.set("rope.scaling.factor", factor);
  f.set("rope.scaling.original_context_length",
        scaling.size_or("original_max_position_embeddings", context));
  f.set("rope.scaling.yarn_beta_fast", scaling.positive_or("beta_fast", 32));
  f.set("rope.scaling.yarn_beta_slow", scaling.positive_or("beta_slow", 1));
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
  wanted = scaling.positive_or("attention_factor", wanted);
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
    for (const float divisor : factors) {
      if (!(divisor > 0)) scaling.damaged(key, "a list of numbers above 0", divisor);
    }
    f.vectors.emplace_back(message("rope_factors_", length, ".weight"), std::move(factors));
  }
  const double times = static_cast<double>(context) / static_cast<double>(original);
  double wanted =
      times <= 1 ? 1 : std::sqrt(1 + std::log(times) / std::log(static_cast<double>(original)));
  wanted = scaling.positive_or("attention_factor", wanted);
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
  double base = c.positive_or("rope_theta", r.base);
  const bool joined = c.has("rope_parameters");
  const bool scaled = joined || c.has("rope_scaling");
  if (!scaled) return f.set("rope.freq_base", base);
  JsonConfig scaling = c.object(joined ? "rope_parameters" : "rope_scaling");
  base = scaling.above("rope_theta", scaling.number_or("rope_theta", base), 1);
  f.set("rope.freq_base", base);
  const std::string old = scaling.text_or("type", scaling.has("factor") ? "" : "default");
  const std::string type = scaling.text_or("rope_type", old);
  if (type == "linear") {
    f.set("rope.scaling.type", "linear");
    f.set("rope.scaling.factor", scaling.positive("factor"));
  } else if (type == "llama3") {
    f.vectors.emplace_back("rope_freqs.weight",
                           llama3_divisors(read_llama3(scaling), base, r.turned));
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
