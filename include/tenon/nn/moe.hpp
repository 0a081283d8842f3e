#pragma once
// Mixture of experts: of many feed-forward layers each token uses a few, chosen by a router
// (arXiv 1701.06538), and perhaps one that all tokens share (arXiv 2401.06066).
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "../core/config.hpp"
#include "../core/layer_numbers.hpp"
#include "../kernels/cpu.hpp"
#include "../kernels/packed.hpp"
#include "bind.hpp"
#include "mlp.hpp"
#include "routing.hpp"

namespace tenon::inline TENON_ABI {

// What a model family fixes. `gate` and `renormalise` are what a file means that does not state
// them (expert_gating_func, expert_weights_norm).
struct MoeSpec {
  Gate gate = Gate::softmax;
  bool renormalise = true;
  bool shared = false;       // an expert that every token uses
  bool shared_gate = false;  // times sigmoid(ffn_gate_inp_shexp . x)
  bool bias = false;         // the router and the experts add biases
  // What groups are worth where the file has groups; by_gate: the sum of the two best under a
  // sigmoid (DeepSeek-V3), the best one under a softmax (DeepSeek-V2).
  enum Groups { by_gate, by_best, by_two_best } groups = by_gate;
};

// y = sum over the chosen experts e of weight_e down_e(activation(gate_e(x), up_e(x))), plus the
// shared expert. Numbers come from the keys expert_*; see routing.hpp for how experts are chosen.
template <MoeSpec S, class Activation = Silu>
struct Moe {
  static_assert(explain_activation<Activation>());
  static_assert(!S.shared_gate || S.shared,
                "tenon: MoeSpec::shared_gate needs MoeSpec::shared, the expert that it gates");
  using Shared = GatedMlp<Activation>;

  struct Config {
    Dim hidden;         // of an expert
    Dim shared_hidden;  // 0: no shared expert
    Routing routing;

    // LoadError names the key that does not fit the others.
    static constexpr Config read(const ModelConfig& config, int layer) {
      Config c{};
      // Files of mixtures state the dense size too, whether or not a layer uses it.
      const bool dense = config.has("feed_forward_length");
      c.hidden = config.has("expert_feed_forward_length") || !dense
                     ? config.size("expert_feed_forward_length", layer)
                     : config.size("feed_forward_length", layer);
      if constexpr (S.shared) c.shared_hidden = read_shared(config, layer, c.hidden);
      Routing& r = c.routing;
      r.experts = config.size("expert_count", layer);
      r.used = config.size("expert_used_count", layer);
      if (r.used > r.experts) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".expert_used_count\" must be at most expert_count = ", r.experts,
                        ", it is ", r.used, "; the file is damaged");
      }
      r.gate = read_gate(config);
      r.renormalise = config.flag_or("expert_weights_norm", S.renormalise);
      r.scale = config.number_or("expert_weights_scale", 1, layer);
      if (r.scale == 0) r.scale = 1;  // as converters write "none"
      constexpr double most = static_cast<double>((std::numeric_limits<float>::max)());
      if (!(r.scale >= -most && r.scale <= most)) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".expert_weights_scale\" must be a finite number, it is ", r.scale,
                        "; the file is damaged");
      }
      read_groups(config, layer, r);
      return c;
    }

   private:
    static constexpr Dim read_shared(const ModelConfig& config, int layer, Dim hidden) {
      if (config.has("expert_shared_feed_forward_length")) {
        config.has("expert_shared_count");  // agrees with it, or is absent
        return config.size("expert_shared_feed_forward_length", layer);
      }
      if (config.number("expert_shared_count", layer) == 0) return 0;
      return config.size("expert_shared_count", layer) * hidden;
    }
    static constexpr Gate read_gate(const ModelConfig& config) {
      const double value = config.number_or("expert_gating_func", 0);
      if (value == 0) return S.gate;
      for (const Gate gate : {Gate::softmax, Gate::sigmoid, Gate::softmax_of_chosen}) {
        if (value == static_cast<double>(gate)) return gate;
      }
      fail<LoadError>("metadata key \"", config.architecture,
                      ".expert_gating_func\" must be 1 (softmax), 2 (sigmoid) or 3 (softmax over "
                      "the chosen), it is ",
                      value, "; compose the model with a layer that implements it");
    }
    static constexpr void read_groups(const ModelConfig& config, int layer, Routing& r) {
      const double groups = config.number_or("expert_group_count", 0, layer);
      config.has("expert_group_used_count");  // means nothing without groups
      if (groups == 0 || groups == 1) return;
      r.groups = config.size("expert_group_count", layer);
      r.groups_used = config.size("expert_group_used_count", layer);
      const bool best =
          S.groups == MoeSpec::by_best || (S.groups == MoeSpec::by_gate && r.gate != Gate::sigmoid);
      r.group_score = best ? GroupScore::best : GroupScore::two_best;
      if (r.groups > r.experts || r.experts % r.groups != 0) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".expert_group_count\" must divide expert_count = ", r.experts, ", it is ",
                        r.groups, "; the file is damaged");
      }
      const Dim fewest = ceil_div(r.used, r.experts / r.groups);
      if (r.groups_used > r.groups || r.groups_used < fewest) {
        fail<LoadError>("metadata key \"", config.architecture,
                        ".expert_group_used_count\" must be ", fewest, " to ", r.groups,
                        " so that ", r.used, " experts can be chosen, it is ", r.groups_used,
                        "; the file is damaged");
      }
    }
  };

  // Whether the checkpoint has experts.
  static constexpr bool fits(const ModelConfig& config, int layer) {
    return config.number_or("expert_count", 0, layer) > 0;
  }

  // What this layer costs; a selection bias, which a file may have or not, is left out.
  static constexpr FeedForwardNumbers numbers(const Config& c, Dim width) {
    FeedForwardNumbers n =
        experts_numbers(width, c.hidden, c.routing.experts, c.routing.used, c.shared_hidden);
    if (S.bias) {
      n.always.vectors = c.routing.experts;
      n.expert.vectors = exact_sum(2 * c.hidden, width);
    }
    if (S.shared_gate && c.shared_hidden > 0) n.always.vectors += width;
    return n;
  }

  template <class Formats>
  struct Weights {
    Config config{};
    PackedMatrix<Formats> router;       // [experts, width]
    std::vector<float> router_bias;     // [experts]
    std::vector<float> selection_bias;  // [experts], of ranks only; may be empty
    std::vector<PackedMatrix<Formats>> gate, up,
        down;  // [experts] x [hidden, width], [width, hidden]
    std::vector<float> gate_bias, up_bias, down_bias;  // [experts, hidden] x 2, [experts, width]
    typename Shared::template Weights<Formats> shared;
    std::vector<float> shared_gate;  // [width]

    template <class Visitor>
    void visit(Visitor&& visitor, Axis width) {
      const Axis experts{config.routing.experts, "expert_count"};
      const Axis hidden{config.hidden, "expert_feed_forward_length"};
      visitor.matrix("ffn_gate_inp", router, experts, width);
      visitor.optional_vector("exp_probs_b.bias", selection_bias, experts);
      visitor.stack("ffn_gate_exps", gate, experts, hidden, width);
      visitor.stack("ffn_up_exps", up, experts, hidden, width);
      visitor.stack("ffn_down_exps", down, experts, width, hidden);
      if constexpr (S.bias) {
        visitor.vector("ffn_gate_inp.bias", router_bias, experts);
        visitor.vectors("ffn_gate_exps.bias", gate_bias, experts, hidden);
        visitor.vectors("ffn_up_exps.bias", up_bias, experts, hidden);
        visitor.vectors("ffn_down_exps.bias", down_bias, experts, width);
      }
      if (config.shared_hidden > 0) {
        shared.config.hidden = config.shared_hidden;
        shared.visit(visitor, width, "_shexp", "expert_shared_count x expert_feed_forward_length");
        if constexpr (S.shared_gate) visitor.vector("ffn_gate_inp_shexp", shared_gate, width);
      }
    }
  };

  // x, y: [tokens, width]; adds to y when `accumulate`. Every token's sum is taken in ascending
  // order of its experts, whatever the other tokens.
  template <class Formats>
  static void forward(Cpu& cpu, const Weights<Formats>& weights, MatView<const float> x,
                      MatView<float> y, bool accumulate) {
    const auto frame = cpu.workspace().frame();
    const Dim tokens = x.extent(0), width = x.extent(1);
    const auto sum = cpu.take_matrix(tokens, width);
    add_experts(cpu, weights, x, sum);
    if (weights.config.shared_hidden > 0) add_shared(cpu, weights, x, sum);
    if (accumulate) {
      cpu.add(sum, y);
    } else {
      cpu.copy(sum, y);
    }
  }

 private:
  // A step's rows, one for every token and expert of it, those of an expert together.
  struct Dispatch {
    std::int32_t* experts;  // [tokens, used] ascending for each token
    float* weights;         // [tokens, used]
    Dim* rows;              // [tokens, used]: where the token stands among the rows
    Dim* tokens;            // [rows]
    Dim* owners;            // [rows]: expert
    Dim* starts;            // [experts + 1]: first row of each expert
  };

  template <class Formats>
  static void choose(Cpu& cpu, const Weights<Formats>& weights, MatView<const float> x,
                     const Dispatch& to) {
    const auto frame = cpu.workspace().frame();
    const Routing& routing = weights.config.routing;
    const Dim tokens = x.extent(0), experts = routing.experts, used = routing.used;
    const auto logits = cpu.take_matrix(tokens, experts);
    double* scratch = cpu.workspace().take<double>(tokens * route_scratch(routing));
    const float* bias = S.bias ? weights.router_bias.data() : nullptr;
    if (S.bias) cpu.reads_vector(experts);
    cpu.linear<Formats>(x, {{&weights.router, logits, false, bias}}, Activations::f32);
    if (cpu.measuring()) return;
    const float* selection =
        weights.selection_bias.empty() ? nullptr : weights.selection_bias.data();
    cpu.each_row(tokens, experts * 32, [&](Dim t) {
      route(routing, logits.row(t), selection, scratch + t * route_scratch(routing),
            to.experts + t * used, to.weights + t * used);
    });
    std::fill_n(to.starts, experts + 1, Dim{0});
    for (Dim i = 0; i < tokens * used; ++i) ++to.starts[to.experts[i] + 1];
    for (Dim e = 0; e < experts; ++e) to.starts[e + 1] += to.starts[e];
    for (Dim i = 0; i < tokens * used; ++i) {  // starts[e] runs to the end of e's rows,
      const Dim row = to.starts[to.experts[i]]++;
      to.rows[i] = row;
      to.tokens[row] = i / used;
      to.owners[row] = to.experts[i];
    }
    for (Dim e = experts; e > 0; --e) to.starts[e] = to.starts[e - 1];  // the next one's start
    to.starts[0] = 0;
  }

  // sum [tokens, width] = the weighted sum of each token's experts.
  template <class Formats>
  static void add_experts(Cpu& cpu, const Weights<Formats>& weights, MatView<const float> x,
                          MatView<float> sum) {
    const auto frame = cpu.workspace().frame();
    Workspace& work = cpu.workspace();
    const Dim tokens = x.extent(0), width = x.extent(1), hidden = weights.config.hidden;
    const Dim experts = weights.config.routing.experts, used = weights.config.routing.used;
    const Dim rows = tokens * used;
    const Dispatch dispatch{work.take<std::int32_t>(rows), work.take<float>(rows),
                            work.take<Dim>(rows),          work.take<Dim>(rows),
                            work.take<Dim>(rows),          work.take<Dim>(experts + 1)};
    choose(cpu, weights, x, dispatch);

    using Group = LinearGroup<Formats>;
    Group* groups = work.take<Group>((std::min)(experts, rows));
    const auto gathered = cpu.take_matrix(rows, width);  // inputs, later the experts' outputs
    const auto gate = cpu.take_matrix(rows, hidden);
    const auto up = cpu.take_matrix(rows, hidden);
    const auto part = [&](MatView<float> all, const Group& group) {
      return matrix(all.row(group.first), group.count, all.extent(1));
    };
    // One group for every expert that has rows, of the products that fill() asks for.
    const auto all_groups = [&](auto&& fill) {
      std::size_t size = 0;
      for (Dim e = 0; !cpu.measuring() && e < experts; ++e) {
        const Dim first = dispatch.starts[e], end = dispatch.starts[e + 1];
        if (first == end) continue;
        auto* group = new (groups + size++) Group{first, end - first, {}, 1};
        fill(static_cast<std::size_t>(e), *group);
      }
      return std::span<const Group>(groups, size);
    };

    cpu.each_row(rows, width, [&](Dim row) {
      std::copy_n(x.row(dispatch.tokens[row]), width, gathered.row(row));
    });
    cpu.linear_groups<Formats>(gathered, all_groups([&](std::size_t e, Group& group) {
                                 group.outputs[0] = {&weights.gate[e], part(gate, group)};
                                 group.outputs[1] = {&weights.up[e], part(up, group)};
                                 group.size = 2;
                                 if (S.bias) cpu.reads_vector(2 * hidden);
                               }));
    cpu.each_row(rows, hidden * 32, [&](Dim row) {
      if constexpr (S.bias) {
        const Dim at = dispatch.owners[row] * hidden;
        cpu.rows().add_to(weights.gate_bias.data() + at, hidden, gate.row(row));
        cpu.rows().add_to(weights.up_bias.data() + at, hidden, up.row(row));
      }
      activate<Activation>(cpu.rows(), gate.row(row), up.row(row), hidden);
    });
    cpu.linear_groups<Formats>(gate, all_groups([&](std::size_t e, Group& group) {
                                 group.outputs[0] = {&weights.down[e], part(gathered, group)};
                                 if (S.bias) cpu.reads_vector(width);
                               }));
    cpu.each_row(tokens, width * used * 2, [&](Dim t) {
      std::fill_n(sum.row(t), width, 0.0f);
      for (Dim i = t * used; i < (t + 1) * used; ++i) {
        float* row = gathered.row(dispatch.rows[i]);
        if constexpr (S.bias) {
          cpu.rows().add_to(weights.down_bias.data() + dispatch.experts[i] * width, width, row);
        }
        cpu.rows().add_scaled(row, dispatch.weights[i], width, sum.row(t));
      }
    });
  }

  // sum += the shared expert, times its gate where there is one.
  template <class Formats>
  static void add_shared(Cpu& cpu, const Weights<Formats>& weights, MatView<const float> x,
                         MatView<float> sum) {
    if constexpr (!S.shared_gate) {
      Shared::forward(cpu, weights.shared, x, sum, true);
    } else {
      const auto frame = cpu.workspace().frame();
      const Dim tokens = x.extent(0), width = x.extent(1);
      const auto out = cpu.take_matrix(tokens, width);
      Shared::forward(cpu, weights.shared, x, out, false);
      cpu.reads_vector(width);
      cpu.each_row(tokens, width * 4, [&](Dim t) {
        double dot = 0;  // products of floats are exact in double
        for (Dim i = 0; i < width; ++i) {
          dot += static_cast<double>(weights.shared_gate[static_cast<std::size_t>(i)]) *
                 static_cast<double>(x(t, i));
        }
        const auto weight = static_cast<float>(1 / (1 + std::exp(-dot)));
        cpu.rows().add_scaled(out.row(t), weight, width, sum.row(t));
      });
    }
  }
};

}  // namespace tenon::inline TENON_ABI
