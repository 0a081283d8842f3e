#pragma once
// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): a row of the cache is one normed
// latent and one rotated key that all heads share.
#include <algorithm>
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
#include "mla_expand.hpp"
#include "turn_keys.hpp"

namespace tenon::inline TENON_ABI {

// How a step attends.
//   never:    always absorbed, as MQA over the latents: a token's bits depend on nothing but its
//             sequence.
//   prefill:  a sequence with more new tokens than MlaDims::crossover() writes out the keys and
//             values of its whole visible prefix, which is less work. It gives up bit equality: the
//             chunking of a prompt then changes results by rounding. It keeps a second copy of the
//             key projection.
enum class Expand { never, prefill };

struct MlaSpec {
  Dim kv_rank = dyn, rope_dim = dyn, nope_dim = dyn, v_dim = dyn, heads = dyn;
  Expand expand = Expand::never;
  bool latent_norm = true;  // latents are RMS-normed before they are cached, as DeepSeek's are
};

template <MlaSpec S>
consteval bool explain_mla() {
  static_assert(S.kv_rank == dyn || S.kv_rank > 0,
                "tenon: MlaSpec::kv_rank must be positive or dyn");
  static_assert(S.rope_dim == dyn || (S.rope_dim > 0 && S.rope_dim % 2 == 0),
                "tenon: MlaSpec::rope_dim must be even and positive, or dyn; values turn in pairs");
  static_assert(S.nope_dim == dyn || S.nope_dim >= 0,
                "tenon: MlaSpec::nope_dim must be 0, positive or dyn; with 0 keys only turn");
  static_assert(S.v_dim == dyn || S.v_dim > 0, "tenon: MlaSpec::v_dim must be positive or dyn");
  static_assert(S.heads == dyn || S.heads > 0, "tenon: MlaSpec::heads must be positive or dyn");
  return true;
}

template <MlaSpec Spec, class M, class Pos, class Cache, class Hook = PlainScore>
struct Mla {
  static constexpr Dim pinned_row =
      Spec.kv_rank == dyn || Spec.rope_dim == dyn ? dyn : Spec.kv_rank + Spec.rope_dim;
  static_assert(explain_mla<Spec>() && explain_mask<M>() && explain_row_cache<Cache>() &&
                explain_position<Pos>() && explain_score<Hook>() && explain_tree_score<M, Hook>() &&
                explain_mask_of_cache<M, Cache>() && explain_row_width<Cache, pinned_row>());
  using Store = Cache;
  using MaskType = M;

  struct Config {
    Dim heads;
    MlaDims dims;
    Dim q_rank;  // 0: queries are not compressed
    M mask;
    Pos position;
    Hook score;

    // key_length_mla and value_length_mla hold the sizes of a head; in files without them,
    // key_length and value_length do.
    static constexpr Config read(const ModelConfig& config, int layer) {
      const Dim heads = config.size("attention.head_count", layer);
      const bool stated = config.has("attention.key_length_mla");
      MlaDims d;
      d.kv_rank = config.size("attention.kv_lora_rank");
      d.rope_dim = config.size("rope.dimension_count");
      const Dim key = config.size(stated ? "attention.key_length_mla" : "attention.key_length");
      d.v_dim = config.size(stated ? "attention.value_length_mla" : "attention.value_length");
      d.nope_dim = key - d.rope_dim;
      if (d.nope_dim < 0) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".rope.dimension_count\" must be at most the head's ", key,
                        " values, it is ", d.rope_dim, "; the file is damaged");
      }
      if (stated) {
        agree(config, "attention.key_length", d.row());
        agree(config, "attention.value_length", d.kv_rank);
      }
      constexpr std::string_view shared = "attention.head_count_kv";
      if (config.has(shared) && config.size(shared, layer) != heads) {
        agree(config, shared, 1, layer);
      }
      constexpr std::string_view compressed = "attention.q_lora_rank";
      const bool direct = config.number_or(compressed, 0) == 0;
      return {heads,
              d,
              direct ? 0 : config.size(compressed),
              read_policy<M>(config, layer),
              read_policy<Pos>(config, layer),
              read_policy<Hook>(config, layer)};
    }

   private:
    static constexpr void agree(const ModelConfig& config, std::string_view key, Dim wanted,
                                int layer = -1) {
      if (!config.has(key) || config.size(key, layer) == wanted) return;
      fail<LoadError>("metadata key \"", config.architecture, ".", key, "\" must be ", wanted,
                      " by the file's other sizes, it is ", config.size(key, layer),
                      "; the file is damaged");
    }
  };

  static constexpr bool fits(const ModelConfig& config, int layer) {
    return policy_fits<M>(config, layer) && policy_fits<Pos>(config, layer);
  }
  static constexpr std::array<Pin, 5> pins(const ModelConfig& config, int layer) {
    const Config c = Config::read(config, layer);
    const auto key = Spec.nope_dim == dyn ? dyn : Spec.nope_dim + c.dims.rope_dim;
    return {Pin{"attention.head_count", Spec.heads, c.heads},
            Pin{"attention.kv_lora_rank", Spec.kv_rank, c.dims.kv_rank},
            Pin{"rope.dimension_count", Spec.rope_dim, c.dims.rope_dim},
            Pin{"attention.key_length_mla", key, c.dims.query()},
            Pin{"attention.value_length_mla", Spec.v_dim, c.dims.v_dim}};
  }
  // One plane: the latent, then the rotary key. The latent is the value too.
  static constexpr RowSpec rows(const Config& c) {
    RowSpec spec{{c.dims.row(), 0}, 0, 0};
    if constexpr (M::bounded) {
      spec.reach = c.mask.rows_back();
      spec.first = first_rows(c.mask);
    }
    return spec;
  }
  // What this layer costs; biases left out.
  static constexpr MixerNumbers numbers(const Config& c, Dim width, bool owns) {
    const MlaDims& d = c.dims;
    MixerNumbers n =
        latent_numbers(width, c.heads, d.kv_rank, d.rope_dim, d.nope_dim, d.v_dim, c.q_rank, owns);
    if (Spec.expand == Expand::prefill && d.nope_dim > 0) {
      n.expand_above = d.crossover();
      n.transposed_copy = exact_product(c.heads, d.nope_dim, d.kv_rank);
    }
    if (!Spec.latent_norm && owns) n.values.vectors -= d.kv_rank;
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
    Linear<Formats> wq;             // [heads x query, width], or of the compressed queries
    Linear<Formats> wq_a;           // [q_rank, width] when they are compressed
    Linear<Formats> wkv_a;          // [kv_rank + rope_dim, width]
    Linear<Formats> wo;             // [width, heads x v_dim]
    RmsNorm::Weights q_norm, norm;  // [q_rank], [kv_rank]
    std::vector<PackedMatrix<Formats>> k_b, v_b;  // [heads] of [kv_rank, nope], [v_dim, kv_rank]
    std::vector<PackedMatrix<Formats>> k_up;      // [heads] of [nope, kv_rank], for Expand::prefill
    int rotary = -1;

    void read(const ModelConfig& model, int layer) {
      config = Config::read(model, layer);
      norm.read(model);
      q_norm.epsilon = norm.epsilon;
    }
    template <class Visitor>
    void visit(Visitor&& visitor, Axis width, bool owns) {
      const MlaDims& d = config.dims;
      const Axis q{config.heads * d.query(), "attention.head_count x key_length_mla"};
      const Axis q_rank{config.q_rank, "attention.q_lora_rank"};
      const Axis row{d.row(), "attention.kv_lora_rank + rope.dimension_count"};
      const Axis values{config.heads * d.v_dim, "attention.head_count x value_length_mla"};
      if (config.q_rank > 0) {
        wq_a.visit(visitor, "attn_q_a", q_rank, width);
        q_norm.visit(visitor, "attn_q_a_norm", q_rank);
        wq.visit(visitor, "attn_q_b", q, q_rank);
      } else {
        wq.visit(visitor, "attn_q", q, width);
      }
      if (owns) {
        wkv_a.visit(visitor, "attn_kv_a_mqa", row, width);
        if (Spec.latent_norm) {
          norm.visit(visitor, "attn_kv_a_norm", {d.kv_rank, "attention.kv_lora_rank"});
        }
      }
      visit_heads(visitor);
      wo.visit(visitor, "attn_output", width, values);
      if constexpr (requires { config.score.visit(visitor, Axis{}); }) {
        config.score.visit(visitor, Axis{config.heads, "attention.head_count"});
      }
      if constexpr (Pos::rotates) rotary = bind_rotary(visitor, config.position, d.rope_dim);
    }

   private:
    // Files hold k_b and v_b, or, older ones, both in one: of each head nope rows that make a key
    // of a latent, so k_b transposed, then v_dim rows.
    template <class Visitor>
    void visit_heads(Visitor& visitor) {
      const MlaDims& d = config.dims;
      const Axis heads{config.heads, "attention.head_count"};
      const Axis rank{d.kv_rank, "attention.kv_lora_rank"};
      const Axis nope{d.nope_dim, "attention.key_length_mla - rope.dimension_count"};
      const Axis v{d.v_dim, "attention.value_length_mla"};
      constexpr bool expands = Spec.expand == Expand::prefill;
      if (d.nope_dim == 0) {
        visitor.stack("attn_v_b", v_b, heads, v, rank);
        return;
      }
      if (visitor.has("attn_kv_b") && !visitor.has("attn_k_b")) {
        const Axis both{d.nope_dim + d.v_dim,
                        "key_length_mla - rope.dimension_count + value_length_mla"};
        visitor.slices("attn_kv_b", k_b, heads, Slice{both, 0, d.nope_dim, true}, rank);
        if (expands) {
          visitor.slices("attn_kv_b", k_up, heads, Slice{both, 0, d.nope_dim, false}, rank);
        }
        visitor.slices("attn_kv_b", v_b, heads, Slice{both, d.nope_dim, d.v_dim, false}, rank);
      } else {
        visitor.stack("attn_k_b", k_b, heads, rank, nope);
        if (expands) {
          visitor.slices("attn_k_b", k_up, heads, Slice{rank, 0, d.kv_rank, true}, nope);
        }
        visitor.stack("attn_v_b", v_b, heads, v, rank);
      }
    }
  };

  // x, y: [tokens, width]; adds to y when `accumulate`.
  template <class Formats>
  static void forward(Cpu& cpu, const Weights<Formats>& weights, Store& store, Slot slot,
                      const LayerStep& step, MatView<const float> x, MatView<float> y,
                      bool accumulate) {
    const auto frame = cpu.workspace().frame();
    const Dim heads = heads_of(weights.config);
    const MlaDims d = dims_of(weights.config);
    const Dim tokens = x.extent(0);
    const auto q = cpu.take_matrix(tokens, heads * d.query());
    const auto out = cpu.take_matrix(tokens, heads * d.v_dim);
    project(cpu, weights, x, q);
    rotate_heads(cpu, weights, step, q, d.nope_dim, heads, d.query());
    if (slot.owns) append(cpu, weights, store, slot.index, step, x);
    const auto absorbed = [&](const Step& some, MatView<const float> queries,
                              MatView<float> outputs) {
      attend_absorbed(cpu, weights, store, slot.index, some, queries, outputs);
    };
    if constexpr (Spec.expand == Expand::prefill) {
      // Without a part that does not turn there is no key to expand.
      const auto expands = [&](const SeqStep& seq) {
        return d.nope_dim > 0 && seq.count > d.crossover();
      };
      const bool any = std::any_of(step.batch.seqs.begin(), step.batch.seqs.end(), expands);
      if (!any || cpu.measuring()) absorbed(step.batch, q, out);
      for (const SeqStep& seq : step.batch.seqs) {
        if (!any) break;
        const auto queries = matrix(q.row(seq.first), seq.count, q.extent(1));
        const auto outputs = matrix(out.row(seq.first), seq.count, out.extent(1));
        SeqStep alone = seq;
        alone.first = 0;
        if (expands(seq)) {
          attend_expanded<Formats>(cpu, store, slot.index, alone, d, weights.k_up, weights.v_b,
                                   queries, outputs, scale(weights.config, d), weights.config.mask,
                                   weights.config.score);
        } else {
          absorbed(Step{{&alone, 1}, {}, seq.count}, queries, outputs);
        }
      }
    } else {
      absorbed(step.batch, q, out);
    }
    cpu.linear<Formats>(out, {weights.wo.into(y, accumulate)});
  }
  // Turns the cached rotary keys of these rows to positions that differ by what the angles stand
  // for.
  template <class Formats>
  static void turn_keys(const RowOps& ops, const Weights<Formats>& weights, Store& store, int slot,
                        SeqId seq, Rows rows, std::span<const RotaryAngles> angles,
                        std::span<float> scratch) {
    static_cast<void>(scratch);
    if constexpr (Pos::rotates) {
      const MlaDims d = dims_of(weights.config);
      turn_cached_keys(ops, store, slot, seq, rows,
                       angles[static_cast<std::size_t>(weights.rotary)], scratch, d.row(),
                       d.kv_rank, 1, d.rope_dim);
    }
  }

 private:
  static constexpr Dim heads_of(const Config& c) { return pinned_or<Spec.heads>(c.heads); }
  static constexpr MlaDims dims_of(const Config& c) {
    return {pinned_or<Spec.kv_rank>(c.dims.kv_rank), pinned_or<Spec.rope_dim>(c.dims.rope_dim),
            pinned_or<Spec.nope_dim>(c.dims.nope_dim), pinned_or<Spec.v_dim>(c.dims.v_dim)};
  }
  static float scale(const Config& c, const MlaDims& d) {
    return static_cast<float>(logit_scale_of(c.position) /
                              std::sqrt(static_cast<double>(d.query())));
  }

  template <class Formats>
  static void project(Cpu& cpu, const Weights<Formats>& weights, MatView<const float> x,
                      MatView<float> q) {
    const Dim q_rank = weights.config.q_rank;
    if (q_rank == 0) return cpu.linear<Formats>(x, {weights.wq.into(q)});
    const auto frame = cpu.workspace().frame();
    const auto compressed = cpu.take_matrix(x.extent(0), q_rank);
    cpu.linear<Formats>(x, {weights.wq_a.into(compressed)});
    RmsNorm::forward(cpu, weights.q_norm, compressed, compressed);
    cpu.linear<Formats>(compressed, {weights.wq.into(q)});
  }
  // Rotates rope_dim values of each head, `first` values into it.
  template <class Formats>
  static void rotate_heads(Cpu& cpu, const Weights<Formats>& weights, const LayerStep& step,
                           MatView<float> x, Dim first, Dim heads, Dim head_dim) {
    if constexpr (Pos::rotates) {
      cpu.each_row(x.extent(0), heads * weights.config.dims.rope_dim * 4, [&](Dim t) {
        const RotaryAngles& angles = step.angles[static_cast<std::size_t>(weights.rotary)];
        rotate(cpu.rows(), angles, t, x.row(t) + first, heads, head_dim);
      });
    }
  }
  // Latents are normed and keys rotated before they are cached.
  template <class Formats>
  static void append(Cpu& cpu, const Weights<Formats>& weights, Store& store, int slot,
                     const LayerStep& step, MatView<const float> x) {
    const auto frame = cpu.workspace().frame();
    const MlaDims d = dims_of(weights.config);
    const auto rows = cpu.take_matrix(x.extent(0), d.row());
    cpu.linear<Formats>(x, {weights.wkv_a.into(rows)});
    if constexpr (Spec.latent_norm) {
      cpu.reads_vector(d.kv_rank);
      cpu.each_row(x.extent(0), d.row() * 4, [&](Dim t) {
        cpu.rows().rms_norm(rows.row(t), weights.norm.gain.data(), d.kv_rank, weights.norm.epsilon,
                            rows.row(t));
      });
    }
    rotate_heads(cpu, weights, step, rows, d.kv_rank, 1, d.row());
    append_rows(cpu, store, slot, 0, step.batch, rows);
  }
  // Queries carried over to the latent, k_b q, so that a latent is key and value of every head.
  template <class Formats>
  static void attend_absorbed(Cpu& cpu, const Weights<Formats>& weights, const Store& store,
                              int slot, const Step& step, MatView<const float> q,
                              MatView<float> out) {
    const auto frame = cpu.workspace().frame();
    const Dim heads = heads_of(weights.config);
    const MlaDims d = dims_of(weights.config);
    const Dim tokens = q.extent(0);
    const auto queries = cpu.take_matrix(tokens, heads * d.row());
    const auto latents = cpu.take_matrix(tokens, heads * d.kv_rank);
    if (d.nope_dim > 0) cpu.linear_heads<Formats>(weights.k_b, q, d.query(), queries, d.row());
    cpu.each_row(tokens, heads * d.rope_dim, [&](Dim t) {
      for (Dim h = 0; h < heads; ++h) {
        if (d.nope_dim == 0) std::fill_n(queries.row(t) + h * d.row(), d.kv_rank, 0.0f);
        std::copy_n(q.row(t) + h * d.query() + d.nope_dim, d.rope_dim,
                    queries.row(t) + h * d.row() + d.kv_rank);
      }
    });
    const AttentionShape shape{heads, 1, d.row(), d.kv_rank, 0};
    attend(cpu, store, slot, step, queries, latents, shape, scale(weights.config, d),
           weights.config.mask, weights.config.score);
    cpu.linear_heads<Formats>(weights.v_b, latents, d.kv_rank, out, d.v_dim);
  }
};

}  // namespace tenon::inline TENON_ABI
