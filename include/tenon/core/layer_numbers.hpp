#pragma once
// What the parts of a layer say of their own cost: plain numbers, from which cost/ derives bytes
// and operations of a model. A part has a static constexpr function that returns them,
//   a mixer         MixerNumbers numbers(const Config&, Dim width, bool owns)
//   a feed-forward  FeedForwardNumbers numbers(const Config&, Dim width)
//   a residual      Values values(const ModelConfig&, Dim width)
//   an input        InputNumbers numbers(const ModelConfig&)
// The last two may do without when they have no values of their own.
// Biases and other tensors that a file may have or not are left out.
#include "exact.hpp"

namespace tenon::inline TENON_ABI {

// Counts of stored values: of matrices, which have the format of the weights, and of norms and
// biases, which are floats.
struct Values {
  Dim matrices = 0, vectors = 0;
  constexpr bool operator==(const Values&) const = default;
};

// A layer with a sequence axis.
struct MixerNumbers {
  Values values{};      // every new token is multiplied with all of the matrices
  Dim pair_flops = 0;   // of one new token and one key, all heads: its score and its weighted sum
  Dim activations = 0;  // values of queries and outputs for one new token
  Dim key_queries = 1;  // query heads that read the same keys
  // The same attention after keys and values are written out of the cached rows, for steps of more
  // than `expand_above` new tokens (0: never): what writing one row out takes, what a pair takes
  // then, and the matrices that new tokens are no longer multiplied with.
  Dim expand_above = 0, expand_flops = 0, expanded_pair_flops = 0, expanded_matrices = 0;
  // Of these matrices, values that are kept a second time, transposed. A format of blocks cannot
  // be: the copy is then of floats.
  Dim transposed_copy = 0;
  // State of a fixed size for each sequence, read and written by every step (recurrent layers).
  Dim state_values = 0;
  Dim state_flops = 0;  // of one new token
  constexpr bool operator==(const MixerNumbers&) const = default;
};

// A layer without one. A token is multiplied with the matrices of `always` and of `used` experts.
struct FeedForwardNumbers {
  Values always{};
  Dim experts = 0, used = 0;
  Values expert{};  // of one
  constexpr bool operator==(const FeedForwardNumbers&) const = default;
};

// What stands in front of the layers besides the embedding: matrices that every token is multiplied
// with, and how many values of others of which it looks up a row.
struct InputNumbers {
  Values values{};
  Dim looked_up = 0;
};

// A whole layer.
struct LayerNumbers {
  MixerNumbers mixer{};
  FeedForwardNumbers feed_forward{};
  Values residual{};
  Dim keys = 0, values = 0;  // values of a cached row's two planes
  Dim reach = 0, first = 0;  // newest and first rows that a window sees; 0: all
};

// Attention with a cache of keys and values: heads queries over kv_heads keys of head_dim values,
// from `width` values and back. A layer that does not own its cache has neither key nor value
// matrix (arXiv 2305.13245, 2405.12981).
constexpr MixerNumbers attention_numbers(Dim width, Dim heads, Dim kv_heads, Dim head_dim,
                                         bool owns = true) {
  const Dim q = exact_product(heads, head_dim);
  const Dim kv = owns ? exact_product(2, kv_heads, head_dim) : 0;
  MixerNumbers n;
  n.values.matrices = exact_product(width, exact_sum(2 * q, kv));
  n.pair_flops = exact_product(4, q);
  n.activations = 2 * q;
  n.key_queries = heads / kv_heads;
  return n;
}

// Latent attention (arXiv 2405.04434): C, R, Dn and Dv of the paper, q_rank 0 for queries that are
// not compressed. Absorbed; with `expand_above` it writes keys and values out in larger steps.
constexpr MixerNumbers latent_numbers(Dim width, Dim heads, Dim kv_rank, Dim rope_dim, Dim nope_dim,
                                      Dim v_dim, Dim q_rank = 0, bool owns = true,
                                      Dim expand_above = 0) {
  const Dim query = exact_product(heads, nope_dim + rope_dim);
  const Dim expanded = nope_dim + v_dim;
  MixerNumbers n;
  n.expanded_matrices = exact_product(heads, kv_rank, expanded);
  n.values.matrices =
      exact_sum(q_rank == 0 ? exact_product(width, query)
                            : exact_sum(exact_product(width, q_rank), exact_product(q_rank, query)),
                owns ? exact_product(width, kv_rank + rope_dim) : 0, n.expanded_matrices,
                exact_product(width, heads, v_dim));
  n.values.vectors = q_rank + (owns ? kv_rank : 0);
  n.pair_flops = exact_product(2, heads, 2 * kv_rank + rope_dim);
  n.activations = exact_product(heads, 2 * kv_rank + rope_dim);
  n.key_queries = heads;
  n.expand_above = expand_above;
  n.expand_flops = exact_product(2, n.expanded_matrices);
  n.expanded_pair_flops = exact_product(2, heads, expanded + rope_dim);
  return n;
}

// Mamba-2 (arXiv 2405.21060): `heads` of `head_dim` values, `groups` of B and C of `state` values,
// a causal convolution over `conv` tokens. FLOPs of the recurrent form: decay, update and readout
// of every state value take 5.
constexpr MixerNumbers mamba2_numbers(Dim width, Dim heads, Dim head_dim, Dim groups, Dim state,
                                      Dim conv = 4) {
  const Dim inner = exact_product(heads, head_dim);
  const Dim convolved = exact_sum(inner, exact_product(2, groups, state));
  MixerNumbers n;
  n.values.matrices = exact_product(width, exact_sum(inner, convolved, heads, inner));
  n.values.vectors = exact_sum(exact_product(convolved, conv + 1), 3 * heads, inner);
  n.state_values = exact_sum(exact_product(inner, state), exact_product(conv - 1, convolved));
  n.state_flops = exact_sum(exact_product(5, inner, state), exact_product(2, conv, convolved));
  return n;
}

// Gated delta rule (arXiv 2412.06464): `v_heads` states of k_dim x v_dim, queries and keys of
// k_heads, an output gate, a causal convolution over `conv` tokens. Decay, prediction, update and
// readout of every state value take 7 FLOPs.
constexpr MixerNumbers delta_numbers(Dim width, Dim k_heads, Dim k_dim, Dim v_heads, Dim v_dim,
                                     Dim conv = 4) {
  const Dim k = exact_product(k_heads, k_dim), v = exact_product(v_heads, v_dim);
  const Dim convolved = exact_sum(2 * k, v);
  MixerNumbers n;
  n.values.matrices = exact_product(width, exact_sum(convolved, v, 2 * v_heads, v));
  n.values.vectors = exact_sum(exact_product(convolved, conv), 2 * v_heads, v_dim);
  n.state_values =
      exact_sum(exact_product(v_heads, k_dim, v_dim), exact_product(conv - 1, convolved));
  n.state_flops =
      exact_sum(exact_product(7, v_heads, k_dim, v_dim), exact_product(2, conv, convolved));
  return n;
}

// Gate, up and down matrices, or `matrices` of another number.
constexpr FeedForwardNumbers mlp_numbers(Dim width, Dim hidden, Dim matrices = 3) {
  return {{exact_product(matrices, width, hidden), 0}, 0, 0, {}};
}

// Experts of gate, up and down, of which a token uses some, and perhaps one of shared_hidden that
// all tokens use; `router`: the matrix that chooses is counted.
constexpr FeedForwardNumbers experts_numbers(Dim width, Dim hidden, Dim experts, Dim used,
                                             Dim shared_hidden = 0, bool router = true) {
  FeedForwardNumbers n;
  n.always.matrices =
      exact_sum(router ? exact_product(width, experts) : 0, exact_product(3, width, shared_hidden));
  n.experts = experts;
  n.used = used;
  n.expert.matrices = exact_product(3, width, hidden);
  return n;
}

}  // namespace tenon::inline TENON_ABI
