#pragma once
// Grouped-query attention (arXiv 2305.13245): as many key/value heads as heads is MHA, one is MQA.
#include <array>
#include <cmath>
#include <vector>

#include "../attn/attend.hpp"
#include "../nn/bind.hpp"
#include "../nn/rope.hpp"
#include "layer_step.hpp"

namespace tenon::inline TENON_ABI {

struct GqaSpec {
  Dim heads = dyn, kv_heads = dyn, head_dim = dyn;
};

template <GqaSpec S>
consteval bool explain_gqa() {
  static_assert(S.head_dim == dyn || S.head_dim > 0,
                "tenon: GqaSpec::head_dim must be positive or dyn");
  if constexpr (S.heads != dyn && S.kv_heads != dyn) {
    static_assert(S.kv_heads > 0 && S.heads % S.kv_heads == 0,
                  "tenon: GqaSpec::heads must be a multiple of kv_heads");
  }
  return true;
}

template <class M, class C>
consteval bool explain_attention() {
  static_assert(explain_mask<M>() && explain_row_cache<C>());
  static_assert(!M::looks_ahead,
                "tenon: a mask that looks ahead needs whole sequences in one step, and a Decoder "
                "takes them in chunks; "
                "use a causal mask");
  return true;
}

template <GqaSpec Spec, class M, class Pos, class Cache, class Hook = PlainScore>
struct Gqa {
  static_assert(explain_gqa<Spec>() && explain_attention<M, Cache>() && explain_score<Hook>() &&
                explain_position<Pos>());
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
      return {heads,
              kv_heads,
              head_width(config, heads),
              read_policy<M>(config, layer),
              read_policy<Pos>(config, layer),
              read_policy<Hook>(config, layer)};
    }

   private:
    static constexpr Dim head_width(const ModelConfig& config, Dim heads) {
      const Dim whole = config.width() / heads;
      const Dim key =
          config.has("attention.key_length") ? config.size("attention.key_length") : whole;
      const Dim value =
          config.has("attention.value_length") ? config.size("attention.value_length") : whole;
      if (key != value || key == 0) {
        fail<LoadError>(
            "metadata keys \"", config.architecture,
            ".attention.key_length\" and value_length must be equal and positive, they are ", key,
            " and ", value, "; this model type does not fit the file");
      }
      return key;
    }
  };

  static constexpr std::array<Pin, 3> pins(const ModelConfig& config, int layer) {
    const Config c = Config::read(config, layer);
    return {Pin{"attention.head_count", Spec.heads, c.heads},
            Pin{"attention.head_count_kv", Spec.kv_heads, c.kv_heads},
            Pin{"attention.key_length", Spec.head_dim, c.head_dim}};
  }
  // What one cached row of this layer is.
  static constexpr RowSpec rows(const Config& c) {
    RowSpec spec{{c.kv_heads * c.head_dim, c.kv_heads * c.head_dim}, 0};
    if constexpr (M::bounded) spec.reach = c.mask.rows_back();
    return spec;
  }

  template <class Formats>
  struct Weights {
    Config config{};
    PackedMatrix<Formats> wq, wk, wv, wo;
    int rotary = -1;

    // `owns`: this layer computes keys and values; otherwise it reads those of another.
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, bool owns) {
      const Axis q{config.heads * config.head_dim, "attention.head_count x key_length"};
      const Axis kv{config.kv_heads * config.head_dim, "attention.head_count_kv x key_length"};
      visitor.matrix("attn_q", wq, q, width);
      if (owns) {
        visitor.matrix("attn_k", wk, kv, width);
        visitor.matrix("attn_v", wv, kv, width);
      }
      visitor.matrix("attn_output", wo, width, q);
      if constexpr (Pos::rotates) rotary = bind_rotary(visitor, config.position, config.head_dim);
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
    if (slot.owns) {
      const auto k = cpu.take_matrix(tokens, kv_heads * head_dim);
      const auto v = cpu.take_matrix(tokens, kv_heads * head_dim);
      cpu.linear<Formats>(x, {{&weights.wq, q}, {&weights.wk, k}, {&weights.wv, v}});
      rotate_heads(cpu, weights, step, q, heads, head_dim);
      rotate_heads(cpu, weights, step, k, kv_heads, head_dim);
      append(cpu, store, slot.index, step, k, v);
    } else {
      cpu.linear<Formats>(x, {{&weights.wq, q}});
      rotate_heads(cpu, weights, step, q, heads, head_dim);
    }
    const AttentionShape shape{heads, kv_heads, head_dim, head_dim, 1};
    const float scale = static_cast<float>(logit_scale_of(weights.config.position)) /
                        std::sqrt(static_cast<float>(head_dim));
    attend(cpu, store, slot.index, step.batch, q, out, shape, scale, weights.config.mask,
           weights.config.score);
    cpu.linear<Formats>(out, {{&weights.wo, y, accumulate}});
  }

 private:
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
  static void append(Cpu& cpu, Store& store, int slot, const LayerStep& step, MatView<float> k,
                     MatView<float> v) {
    if (cpu.measuring()) return;
    const RowCodec& keys = row_codec_of<typename Store::Formats>(store.tags()[0]);
    const RowCodec& values = row_codec_of<typename Store::Formats>(store.tags()[1]);
    for (const SeqStep& seq : step.batch.seqs) {
      for (int i = 0; i < seq.count; ++i) {
        const Dim t = seq.first + i;
        const int row = seq.base + i;
        keys.store(cpu.rows(), k.row(t), k.extent(1), store.row(seq.seq, slot, 0, row));
        values.store(cpu.rows(), v.row(t), v.extent(1), store.row(seq.seq, slot, 1, row));
      }
    }
  }
};

}  // namespace tenon::inline TENON_ABI
