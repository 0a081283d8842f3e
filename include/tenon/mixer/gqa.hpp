#pragma once
// Grouped-query attention (arXiv 2305.13245): as many key/value heads as heads is MHA, one is MQA.
#include <array>
#include <cmath>
#include <vector>

#include "../attn/attend.hpp"
#include "../attn/masks.hpp"
#include "../core/layer_numbers.hpp"
#include "../nn/linear.hpp"
#include "../nn/norm.hpp"
#include "../nn/rope.hpp"
#include "append.hpp"
#include "layer_step.hpp"
#include "turn_keys.hpp"

namespace tenon::inline TENON_ABI {

// RMS norms of queries and keys before their rotation: of each head alone (Qwen 3, Gemma 3), or
// over all heads together (OLMo 2).
enum class QkNorm { none, per_head, full_width };

struct GqaSpec {
  Dim heads = dyn, kv_heads = dyn, head_dim = dyn;
  QkNorm qk_norm = QkNorm::none;
  bool value_norm = false;    // values of each head are RMS-normed without a gain (Gemma 4)
  bool output_gate = false;   // attn_q also gives, per head, a gate: output *= sigmoid(gate)
  bool fused = false;         // queries, keys and values are one tensor, attn_qkv (Phi-3)
  bool window_sizes = false;  // head_dim is the file's "attention.key_length_swa"
};

template <GqaSpec S>
consteval bool explain_gqa() {
  static_assert(!(S.fused && S.output_gate),
                "tenon: GqaSpec::fused and output_gate exclude each other: no layout is known that "
                "has both");
  static_assert(S.head_dim == dyn || S.head_dim > 0,
                "tenon: GqaSpec::head_dim must be positive or dyn");
  if constexpr (S.heads != dyn && S.kv_heads != dyn) {
    static_assert(S.kv_heads > 0 && S.heads % S.kv_heads == 0,
                  "tenon: GqaSpec::heads must be a multiple of kv_heads");
  }
  return true;
}

template <GqaSpec Spec, class M, class Pos, class Cache, class Hook = PlainScore>
struct Gqa {
  static constexpr Dim pinned_row =
      Spec.kv_heads == dyn || Spec.head_dim == dyn ? dyn : Spec.kv_heads * Spec.head_dim;
  static_assert(explain_gqa<Spec>() && explain_mask<M>() && explain_row_cache<Cache>() &&
                explain_score<Hook>() && explain_position<Pos>() && explain_tree_score<M, Hook>() &&
                explain_mask_of_cache<M, Cache>() && explain_row_width<Cache, pinned_row>());
  using Store = Cache;
  using MaskType = M;

  struct Config {
    Dim heads, kv_heads, head_dim;
    M mask;
    Pos position;
    Hook score;

    static constexpr Config read(const ModelConfig& config, int layer) {
      const Dim heads = config.size("attention.head_count", layer);
      const Dim kv_heads = config.has("attention.head_count_kv")
                               ? config.size("attention.head_count_kv", layer)
                               : heads;
      if (heads % kv_heads != 0) {
        fail<LoadError>(
            "metadata key \"", config.architecture,
            ".attention.head_count\" must be a multiple of attention.head_count_kv, they are ",
            heads, " and ", kv_heads, "; the file is damaged");
      }
      const Dim head_dim = head_width(config, heads);
      constexpr Dim most = Dim{1} << 30;  // so that no sum of these products overflows
      if (heads > most / head_dim) {
        fail<LoadError>(
            "metadata key \"", config.architecture, ".attention.head_count\" times the head's ",
            head_dim, " values must be at most ", most, ", it is ", heads, "; the file is damaged");
      }
      return {heads,
              kv_heads,
              head_dim,
              read_policy<M>(config, layer),
              read_policy<Pos>(config, layer),
              read_policy<Hook>(config, layer)};
    }

   private:
    static constexpr Dim head_width(const ModelConfig& config, Dim heads) {
      const std::string_view key_name =
          Spec.window_sizes ? "attention.key_length_swa" : "attention.key_length";
      const std::string_view value_name =
          Spec.window_sizes ? "attention.value_length_swa" : "attention.value_length";
      const Dim whole = config.width() / heads;
      const Dim key = config.has(key_name) ? config.size(key_name) : whole;
      const Dim value = config.has(value_name) ? config.size(value_name) : whole;
      if (key != value || key == 0) {
        fail<LoadError>("metadata keys \"", config.architecture, ".", key_name, "\" and ",
                        value_name, " must be equal and positive, they are ", key, " and ", value,
                        "; this model type does not fit the file");
      }
      return key;
    }
  };

  static constexpr bool fits(const ModelConfig& config, int layer) {
    return policy_fits<M>(config, layer) && policy_fits<Pos>(config, layer);
  }
  static constexpr std::array<Pin, 3> pins(const ModelConfig& config, int layer) {
    const Config c = Config::read(config, layer);
    return {Pin{"attention.head_count", Spec.heads, c.heads},
            Pin{"attention.head_count_kv", Spec.kv_heads, c.kv_heads},
            Pin{"attention.key_length", Spec.head_dim, c.head_dim}};
  }
  // What one cached row of this layer is.
  static constexpr RowSpec rows(const Config& c) {
    RowSpec spec{{c.kv_heads * c.head_dim, c.kv_heads * c.head_dim}, 0, 0};
    if constexpr (M::bounded) {
      spec.reach = c.mask.rows_back();
      spec.first = first_rows(c.mask);
    }
    return spec;
  }
  // What this layer costs; biases and learned sinks left out.
  static constexpr MixerNumbers numbers(const Config& c, Dim width, bool owns) {
    MixerNumbers n = attention_numbers(width, c.heads, c.kv_heads, c.head_dim, owns);
    const Dim q = c.heads * c.head_dim, kv = owns ? c.kv_heads * c.head_dim : 0;
    if (Spec.output_gate) n.values.matrices = exact_sum(n.values.matrices, exact_product(width, q));
    if (Spec.qk_norm == QkNorm::per_head) n.values.vectors = c.head_dim * (owns ? 2 : 1);
    if (Spec.qk_norm == QkNorm::full_width) n.values.vectors = q + kv;
    return n;
  }
  // Whether new rows [base, base + count) may be computed without those that follow.
  static constexpr bool complete(const Config& c, int base, int count) {
    if constexpr (M::looks_ahead) {
      return c.mask.complete(base, count);
    } else {
      return true;
    }
  }

  template <class Formats>
  struct Weights {
    Config config{};
    Linear<Formats> wq, wk, wv, wo;
    RmsNorm::Weights q_norm, k_norm, v_norm;
    int rotary = -1;

    void read(const ModelConfig& model, int layer) {
      config = Config::read(model, layer);
      for (RmsNorm::Weights* norm : {&q_norm, &k_norm, &v_norm}) {
        if (Spec.qk_norm != QkNorm::none || Spec.value_norm) norm->read(model);
      }
    }
    // `owns`: this layer computes keys and values; otherwise it reads those of another.
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, bool owns) {
      const Axis head{config.head_dim, "attention.key_length"};
      const Axis q{config.heads * config.head_dim, "attention.head_count x key_length"};
      const Axis kv{config.kv_heads * config.head_dim, "attention.head_count_kv x key_length"};
      if constexpr (Spec.fused) {
        visit_fused(visitor, width, q, kv);
      } else {
        visit_apart(visitor, width, q, kv, owns);
      }
      wo.visit(visitor, "attn_output", width, q);
      if constexpr (Spec.qk_norm != QkNorm::none) {
        const bool heads = Spec.qk_norm == QkNorm::per_head;
        q_norm.visit(visitor, "attn_q_norm", heads ? head : q);
        if (owns) k_norm.visit(visitor, "attn_k_norm", heads ? head : kv);
      }
      if (Spec.value_norm) v_norm.gain.assign(static_cast<std::size_t>(config.head_dim), 1.0f);
      if constexpr (requires { config.score.visit(visitor, Axis{}); }) {
        config.score.visit(visitor, Axis{config.heads, "attention.head_count"});
      }
      if constexpr (Pos::rotates) rotary = bind_rotary(visitor, config.position, config.head_dim);
    }

   private:
    template <class Visitor>
    void visit_apart(Visitor&& visitor, Axis width, Axis q, Axis kv, bool owns) {
      const Axis gated{2 * q.size, "2 x attention.head_count x key_length"};
      wq.visit(visitor, "attn_q", Spec.output_gate ? gated : q, width);
      if (!owns) return;
      wk.visit(visitor, "attn_k", kv, width);
      // Some Gemma 4 files have no values of their own: the keys serve as both.
      if (!Spec.value_norm || visitor.has("attn_v")) wv.visit(visitor, "attn_v", kv, width);
    }
    template <class Visitor>
    void visit_fused(Visitor&& visitor, Axis width, Axis q, Axis kv) {
      const Axis whole{q.size + 2 * kv.size,
                       "(attention.head_count + 2 attention.head_count_kv) x key_length"};
      wq.visit_rows(visitor, "attn_qkv", whole, 0, q, width);
      wk.visit_rows(visitor, "attn_qkv", whole, q.size, kv, width);
      wv.visit_rows(visitor, "attn_qkv", whole, q.size + kv.size, kv, width);
    }
  };

  // x, y: [tokens, width]; adds to y when `accumulate`.
  template <class Formats>
  static void forward(Cpu& cpu, const Weights<Formats>& weights, Store& store, Slot slot,
                      const LayerStep& step, MatView<const float> x, MatView<float> y,
                      bool accumulate) {
    const auto frame = cpu.workspace().frame();
    const Dim heads = pinned_or<Spec.heads>(weights.config.heads);
    const Dim kv_heads = pinned_or<Spec.kv_heads>(weights.config.kv_heads);
    const Dim head_dim = pinned_or<Spec.head_dim>(weights.config.head_dim);
    const Dim tokens = x.extent(0);
    const auto q = cpu.take_matrix(tokens, heads * head_dim);
    const auto out = cpu.take_matrix(tokens, heads * head_dim);
    const auto gated = Spec.output_gate ? cpu.take_matrix(tokens, 2 * heads * head_dim) : q;
    if (slot.owns) {
      const auto k = cpu.take_matrix(tokens, kv_heads * head_dim);
      const auto v = cpu.take_matrix(tokens, kv_heads * head_dim);
      if (Spec.value_norm && weights.wv.weight.out() == 0) {
        cpu.linear<Formats>(x, {weights.wq.into(gated), weights.wk.into(k)});
        cpu.copy(k, v);
      } else {
        cpu.linear<Formats>(x, {weights.wq.into(gated), weights.wk.into(k), weights.wv.into(v)});
      }
      if constexpr (Spec.qk_norm != QkNorm::none) norm(cpu, weights.k_norm, k, head_dim);
      if constexpr (Spec.value_norm) norm_heads(cpu, weights.v_norm, v, head_dim);
      rotate_heads(cpu, weights, step, k, kv_heads, head_dim);
      append_rows(cpu, store, slot.index, 0, step.batch, k);
      append_rows(cpu, store, slot.index, 1, step.batch, v);
    } else {
      cpu.linear<Formats>(x, {weights.wq.into(gated)});
    }
    if constexpr (Spec.output_gate) take_queries(cpu, gated, q, heads, head_dim);
    if constexpr (Spec.qk_norm != QkNorm::none) norm(cpu, weights.q_norm, q, head_dim);
    rotate_heads(cpu, weights, step, q, heads, head_dim);
    const AttentionShape shape{heads, kv_heads, head_dim, head_dim, 1};
    const float scale = static_cast<float>(logit_scale_of(weights.config.position)) /
                        std::sqrt(static_cast<float>(head_dim));
    attend(cpu, store, slot.index, step.batch, q, out, shape, scale, weights.config.mask,
           weights.config.score);
    if constexpr (Spec.output_gate) apply_gates(cpu, gated, out, heads, head_dim);
    cpu.linear<Formats>(out, {weights.wo.into(y, accumulate)});
  }

  // Turns the cached keys of these rows to positions that differ by what the angles stand for.
  template <class Formats>
  static void turn_keys(const RowOps& ops, const Weights<Formats>& weights, Store& store, int slot,
                        SeqId seq, Rows rows, std::span<const RotaryAngles> angles,
                        std::span<float> scratch) {
    static_cast<void>(scratch);
    if constexpr (Pos::rotates) {
      const Config& c = weights.config;
      turn_cached_keys(ops, store, slot, seq, rows,
                       angles[static_cast<std::size_t>(weights.rotary)], scratch,
                       c.kv_heads * c.head_dim, 0, c.kv_heads, c.head_dim);
    }
  }

 private:
  static void norm_heads(Cpu& cpu, const RmsNorm::Weights& weights, MatView<float> x,
                         Dim head_dim) {
    const Dim rows = x.extent(0) * x.extent(1) / head_dim;
    const auto heads = matrix(x.data, rows, head_dim);
    RmsNorm::forward(cpu, weights, heads, heads);
  }
  static void norm(Cpu& cpu, const RmsNorm::Weights& weights, MatView<float> x, Dim head_dim) {
    if constexpr (Spec.qk_norm == QkNorm::per_head) {
      norm_heads(cpu, weights, x, head_dim);
    } else {
      RmsNorm::forward(cpu, weights, x, x);
    }
  }
  // gated [tokens, heads x (query, gate)]
  static void take_queries(Cpu& cpu, MatView<const float> gated, MatView<float> q, Dim heads,
                           Dim head_dim) {
    cpu.each_row(q.extent(0), heads * head_dim, [&](Dim t) {
      for (Dim h = 0; h < heads; ++h) {
        std::copy_n(gated.row(t) + 2 * h * head_dim, head_dim, q.row(t) + h * head_dim);
      }
    });
  }
  static void apply_gates(Cpu& cpu, MatView<const float> gated, MatView<float> out, Dim heads,
                          Dim head_dim) {
    cpu.each_row(out.extent(0), heads * head_dim * 32, [&](Dim t) {
      for (Dim h = 0; h < heads; ++h) {
        const float* gate = gated.row(t) + (2 * h + 1) * head_dim;
        float* to = out.row(t) + h * head_dim;
        for (Dim i = 0; i < head_dim; ++i) to[i] /= 1 + std::exp(-gate[i]);
      }
    });
  }
  template <class Formats>
  static void rotate_heads(Cpu& cpu, const Weights<Formats>& weights, const LayerStep& step,
                           MatView<float> x, Dim heads, Dim head_dim) {
    if constexpr (Pos::rotates) {
      cpu.each_row(x.extent(0), heads * head_dim * 4, [&](Dim t) {
        const RotaryAngles& angles = step.angles[static_cast<std::size_t>(weights.rotary)];
        rotate(cpu.rows(), angles, t, x.row(t), heads, head_dim);
      });
    }
  }
};

}  // namespace tenon::inline TENON_ABI
