#pragma once
// Grouped-query attention as latent attention (after MHA2MLA, arXiv 2502.14837, and TransMLA,
// arXiv 2502.07864).
#include <algorithm>
#include <cmath>
#include <vector>

#include "../tensor/eigen.hpp"
#include "key_values.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// What one layer's latent is made of. Joint rows: of each key/value head its head_dim - part keys
// that do not turn, scaled by `balance`, then all values.
struct LatentPlan {
  Dim heads = 0, kv_heads = 0, head_dim = 0;
  Dim part = 0;  // values of each key that keep turning
  Dim rank = 0;
  Dim nope() const { return head_dim - part; }
  Dim keys() const { return kv_heads * nope(); }
  Dim joint() const { return keys() + kv_heads * head_dim; }
  Dim rotary() const { return kv_heads * part; }
  Dim query() const { return nope() + rotary(); }
  // The row of attn_k that is joint row i, i < keys().
  Dim key_row(Dim i) const { return i / nope() * head_dim + part + i % nope(); }
};

// y = J x as eigenvectors U [joint, rank] of what they vary by: the latent is U^T J x, and U gives
// back of it the closest to J x in the mean over the text's vectors, or over all directions.
struct Latent {
  EigenMatrix<double> joint;  // [joint, in + 1], the bias last
  EigenMatrix<double> basis;  // [joint, rank]
  double balance = 1;
};

inline Latent find_latent(const Projection& k, const Projection& v, const LatentPlan& plan,
                          const MatView<const float>* x) {
  const auto in = static_cast<Eigen::Index>(k.in);
  Latent latent;
  latent.joint.setZero(static_cast<Eigen::Index>(plan.joint()), in + 1);
  for (Dim i = 0; i < plan.joint(); ++i) {
    const bool key = i < plan.keys();
    const Projection& from = key ? k : v;
    const Dim row = key ? plan.key_row(i) : i - plan.keys();
    for (Eigen::Index c = 0; c < in; ++c) {
      latent.joint(i, c) = static_cast<double>(from.row(row)[c]);
    }
    latent.joint(i, in) = from.shift(row);
  }
  EigenMatrix<double> outputs = latent.joint;  // [joint, vectors]
  if (x != nullptr) {
    EigenMatrix<double> with_one = EigenMatrix<double>::Ones(in + 1, x->extent(0));
    with_one.topRows(in) = as_eigen(*x).cast<double>().transpose();
    outputs = latent.joint * with_one;
  }
  // Keys are larger than values, but both count; so they are made to weigh the same.
  const auto keys = static_cast<Eigen::Index>(plan.keys());
  const double key_norm = outputs.topRows(keys).norm();
  const double value_norm = outputs.bottomRows(outputs.rows() - keys).norm();
  if (key_norm > 0 && value_norm > 0) latent.balance = value_norm / key_norm;
  outputs.topRows(keys) *= latent.balance;
  latent.joint.topRows(keys) *= latent.balance;
  const EigenMatrix<double> gram = outputs * outputs.transpose();
  const Eigen::SelfAdjointEigenSolver<EigenMatrix<double>> solver(gram);
  if (solver.info() != Eigen::Success) {
    fail<LoadError>(
        "the keys and values of a layer must have a decomposition, the solver found "
        "none; the weights are damaged");
  }
  // Eigenvalues ascend.
  latent.basis =
      solver.eigenvectors().rightCols(static_cast<Eigen::Index>(plan.rank)).rowwise().reverse();
  return latent;
}

// Writes one layer's tensors; returns its error.
inline LayerError make_latent(EditedSource& to, const TensorSource& source, int layer, Dim width,
                              const LatentPlan& plan, const MixerInputs* text) {
  const Dim kv = plan.kv_heads * plan.head_dim;
  const auto q = read_projection(source, layer, "attn_q", plan.heads * plan.head_dim, width);
  const auto k = read_projection(source, layer, "attn_k", kv, width);
  const auto v = read_projection(source, layer, "attn_v", kv, width);
  MatView<const float> x;
  if (text != nullptr) x = text->of(layer);
  const Latent latent = find_latent(k, v, plan, text == nullptr ? nullptr : &x);

  // Rows of the cache: the latent, then what turns of every head.
  const bool biased = !k.bias.empty() || !v.bias.empty();
  Projection rows = zeros(plan.rank + plan.rotary(), width, biased);
  const EigenMatrix<double> down = latent.basis.transpose() * latent.joint;
  for (Dim i = 0; i < plan.rank; ++i) {
    for (Dim c = 0; c < width; ++c) rows.row(i)[c] = static_cast<float>(down(i, c));
    if (biased) rows.bias[static_cast<std::size_t>(i)] = static_cast<float>(down(i, width));
  }
  for (Dim i = 0; i < plan.rotary(); ++i) {
    const Dim from = i / plan.part * plan.head_dim + i % plan.part;
    std::copy_n(k.row(from), width, rows.row(plan.rank + i));
    if (biased) {
      rows.bias[static_cast<std::size_t>(plan.rank + i)] = static_cast<float>(k.shift(from));
    }
  }
  write_projection(to, layer, "attn_kv_a_mqa", rows);

  // Queries: what does not turn, then zeros but where their own head's key is. Their scale makes
  // up for 1 / sqrt(query) in place of 1 / sqrt(head_dim).
  const Dim group = plan.heads / plan.kv_heads;
  const double scale =
      std::sqrt(static_cast<double>(plan.query()) / static_cast<double>(plan.head_dim));
  Projection queries = zeros(plan.heads * plan.query(), width, !q.bias.empty());
  for (Dim h = 0; h < plan.heads; ++h) {
    for (Dim i = 0; i < plan.head_dim; ++i) {
      const bool turns = i < plan.part;
      const Dim at =
          h * plan.query() + (turns ? plan.nope() + h / group * plan.part + i : i - plan.part);
      const Dim from = h * plan.head_dim + i;
      for (Dim c = 0; c < width; ++c) {
        queries.row(at)[c] = static_cast<float>(scale * static_cast<double>(q.row(from)[c]));
      }
      if (!q.bias.empty()) {
        queries.bias[static_cast<std::size_t>(at)] = static_cast<float>(scale * q.shift(from));
      }
    }
  }
  write_projection(to, layer, "attn_q", queries);

  // Keys and values of a latent, per query head.
  std::vector<float> k_b, v_b;
  for (Dim h = 0; h < plan.heads; ++h) {
    const Dim key = h / group * plan.nope(), value = plan.keys() + h / group * plan.head_dim;
    for (Dim c = 0; c < plan.rank; ++c) {
      for (Dim i = 0; i < plan.nope(); ++i) {
        k_b.push_back(static_cast<float>(latent.basis(key + i, c) / latent.balance));
      }
    }
    for (Dim i = 0; i < plan.head_dim; ++i) {
      for (Dim c = 0; c < plan.rank; ++c) {
        v_b.push_back(static_cast<float>(latent.basis(value + i, c)));
      }
    }
  }
  if (plan.nope() > 0) {
    to.replace(in_layer(layer, "attn_k_b.weight"), {plan.heads, plan.rank, plan.nope()}, k_b);
  }
  to.replace(in_layer(layer, "attn_v_b.weight"), {plan.heads, plan.head_dim, plan.rank}, v_b);
  remove_projection(to, layer, "attn_k");
  remove_projection(to, layer, "attn_v");

  // What U U^T J makes of keys and values.
  const EigenMatrix<double> back = latent.basis * down;
  Projection k_is = k, v_is = v;
  k_is.bias.resize(static_cast<std::size_t>(kv));
  v_is.bias.resize(static_cast<std::size_t>(kv));
  for (Dim i = 0; i < plan.joint(); ++i) {
    const bool is_key = i < plan.keys();
    Projection& made = is_key ? k_is : v_is;
    const Dim row = is_key ? plan.key_row(i) : i - plan.keys();
    const double factor = is_key ? 1 / latent.balance : 1;
    for (Dim c = 0; c < width; ++c) made.row(row)[c] = static_cast<float>(factor * back(i, c));
    made.bias[static_cast<std::size_t>(row)] = static_cast<float>(factor * back(i, width));
  }
  return {layer, relative_error(k_is, k, text, layer), relative_error(v_is, v, text, layer)};
}

}  // namespace detail

// A Llama as latent attention of the architecture "llama-mla" (zoo::LlamaMla). A row of its cache
// is a latent of `kv_rank` values and the first `part` values of each head's key, which keep
// turning:
//   c = U^T [b W_Kn; W_V] x,   k_n = U_K c / b,   v = U_V c,   k_r = rope(W_Kr x),
// U the first kv_rank principal directions of keys and values together: of their outputs on `text`,
// or else of the weights (a truncated singular value decomposition). b gives both the same norm.
// There is no norm of latents. All heads share k_r, so a query holds zeros in place of the keys of
// other heads: attn_q grows by the number of key/value heads.
// By default `part` is all that turns. Then kv_rank = key/value heads x (values that do not turn +
// head_dim) is exact to rounding and the most allowed, and only values get smaller. With a smaller
// part the pairs that turn slowest stop turning, as in MHA2MLA, and their keys join the latent;
// what that costs depends on distances and so stands in the divergence, not among the errors of
// keys. RequestError: kv_rank or part out of range. LoadError, ShapeError: no Llama, or it does not
// fit.
inline Conversion to_mla(const TensorSource& source, Dim kv_rank, Dim part = dyn,
                         const MixerInputs* text = nullptr) {
  const ConfigStorage storage(source);
  const ModelConfig config = storage.view();
  detail::need_llama(source, config, "to_mla");
  detail::check_text(text, config);
  if (SlidingWindow::fits(config, 0)) {
    fail<LoadError>(source.origin(), ": to_mla needs full attention, the file has a window of ",
                    config.number("attention.sliding_window", 0),
                    "; convert the model from before it was given one");
  }
  const auto sizes = detail::AttentionSizes::read(config, 0);
  const Rope rope = Rope::read(config, 0);
  const Dim turned = detail::turned_values(rope.rope_dim, sizes.head_dim);
  if (part != dyn && part < turned && rope.magnitude() != 1) {
    fail<LoadError>(
        source.origin(),
        ": to_mla must keep all of each key turning where rotations are scaled, here by ",
        rope.magnitude(), ", ", part, " of ", turned, " were asked for; leave the part out");
  }
  detail::LatentPlan plan{sizes.heads, sizes.kv_heads, sizes.head_dim, part == dyn ? turned : part,
                          kv_rank};
  if (plan.part < 2 || plan.part % 2 != 0 || plan.part > turned) {
    fail<RequestError>("the values of each key that keep turning must be even and 2 to ", turned,
                       ", as many as turn now, they are ", plan.part, "; choose such a number");
  }
  constexpr Dim most_heads = 256, most_joint = 1 << 12;
  if (plan.kv_heads > most_heads || plan.joint() > most_joint) {
    fail<LoadError>(source.origin(), ": to_mla needs at most ", most_heads, " key/value heads and ",
                    most_joint, " values of a token's keys and values for a latent, the file has ",
                    plan.kv_heads, " and ", plan.joint(),
                    "; use to_gqa first, or keep more of each key turning");
  }
  if (kv_rank < 1 || kv_rank > plan.joint()) {
    fail<RequestError>("the latent must have 1 to ", plan.joint(),
                       " values, as many as it replaces, it has ", kv_rank,
                       "; choose a smaller one to save memory");
  }
  Conversion out{EditedSource(source), {}};
  out.report.conversion = message("to_mla: latents of ", kv_rank, " values, ", plan.part, " of ",
                                  turned, " values of each key turn");
  out.report.on_text = text != nullptr;
  out.report.before = cache_cost(config);
  const int layers = config.layers();
  for (int layer = 0; layer < layers; ++layer) {
    out.report.layers.push_back(
        detail::make_latent(out.source, source, layer, config.width(), plan, text));
  }
  const auto set = [&](std::string_view key, Dim value) {
    out.source.set(key, static_cast<std::uint32_t>(value));
  };
  out.source.set_architecture("llama-mla");
  set("attention.head_count", plan.heads);
  set("attention.head_count_kv", 1);
  set("attention.kv_lora_rank", kv_rank);
  set("attention.key_length", kv_rank + plan.rotary());
  set("attention.value_length", kv_rank);
  set("attention.key_length_mla", plan.query());
  set("attention.value_length_mla", plan.head_dim);
  set("rope.dimension_count", plan.rotary());
  set("rope.part_dimension_count", plan.part);
  set("rope.head_dimension_count", turned);
  out.report.after = cache_cost(out.source);
  return out;
}

}  // namespace tenon::inline TENON_ABI
