#pragma once
// What one forward step does: FLOPs and bytes moved, each of the linear layers, of attention and of
// the unembedding.
#include "model_sizes.hpp"
#include "operation.hpp"

namespace tenon::inline TENON_ABI::cost {

// `batch` sequences with `tokens` new tokens each; `context` rows of each are visible, the new ones
// included. Decode: tokens 1. Prefill: tokens == context.
struct Step {
  Dim batch = 1, tokens = 1, context = 1;
  Dim logit_rows = 0;  // rows that want logits; 0: one of each sequence
  bool causal = true;  // false: every new token sees all rows, as textbook formulas have it

  // RequestError when there are no tokens, or more new ones than rows.
  constexpr void check() const {
    if (batch < 1 || tokens < 1 || tokens > context || logit_rows < 0) {
      fail<RequestError>(
          "a cost::Step must have a batch and tokens of at least 1 and no more "
          "tokens than context, it has ",
          batch, ", ", tokens, " and ", context, "; count new tokens as context");
    }
  }
  constexpr Dim all_tokens() const { return exact_product(batch, tokens); }
};

template <class T>
struct Parts {
  T linear{}, attention{}, unembedding{};
  constexpr T total() const { return linear + attention + unembedding; }
};

// FLOPs; a multiply-add is two. Norms, activations and rotations are left out.
constexpr Parts<Dim> flops(const ModelSizes& m, const Step& step) {
  step.check();
  const Dim tokens = step.all_tokens();
  Parts<Dim> parts;
  parts.linear = exact_product(2, tokens, m.input.matrices + m.output_norm.matrices);
  parts.linear += m.sum([&](const LayerSizes& l) {
    const FeedForwardNumbers& f = l.feed_forward;
    const MixerNumbers& x = l.mixer;
    const bool expands = x.expand_above > 0 && step.tokens > x.expand_above;
    const Dim met =
        exact_sum(x.values.matrices - (expands ? x.expanded_matrices : 0), l.residual.matrices,
                  f.always.matrices, exact_product(f.used, f.expert.matrices));
    return exact_product(2, tokens, met);
  });
  parts.attention = m.sum([&](const LayerSizes& l) {
    const MixerNumbers& x = l.mixer;
    const CacheSizes& c = l.cache;
    const Dim reach = c.reach == 0 ? 0 : c.reach + c.first;
    const Dim pairs = query_key_pairs(step.tokens, step.context, reach, step.causal);
    const bool expands = x.expand_above > 0 && step.tokens > x.expand_above;
    const Dim each = expands ? exact_sum(exact_product(pairs, x.expanded_pair_flops),
                                         exact_product(step.context, x.expand_flops))
                             : exact_product(pairs, x.pair_flops);
    return exact_product(step.batch, exact_sum(each, exact_product(step.tokens, x.state_flops)));
  });
  const Dim rows = step.logit_rows == 0 ? step.batch : step.logit_rows;
  parts.unembedding = exact_product(2, rows, m.vocab, m.width);
  return parts;
}

// Of `experts`, how many distinct ones `tokens` tokens use that each choose `used`, when choices
// are independent and uniform: E (1 - (1 - k / E)^tokens).
constexpr double expected_experts(Dim experts, Dim used, Dim tokens) {
  if (experts == 0) return 0;
  double missed = 1;
  double base = 1 - static_cast<double>(used) / static_cast<double>(experts);
  for (Dim n = tokens; n > 0; n /= 2, base *= base) {
    if (n % 2 == 1) missed *= base;
  }
  return static_cast<double>(experts) * (1 - missed);
}

// Traffic of one sequence's cache: bytes that attention of one step reads, of every layer, whether
// it owns its rows or not, and twice the recurrent state. A window's new tokens share rows.
constexpr Dim cache_traffic(const ModelSizes& m, Dim tokens, Dim context) {
  return m.sum([&](const LayerSizes& l) {
    const CacheSizes& c = l.cache;
    const Dim seen = c.reach == 0 ? context : c.reach + c.first + tokens - 1;
    const Dim rows = seen < context ? seen : context;
    const Dim state = exact_product(2, l.mixer.state_values, c.state_value_bytes);
    return exact_sum(exact_product(rows, c.row_bytes), state);
  });
}

// Bytes read from memory: every weight once, of experts those that are expected to be used, and the
// caches of all sequences. The new rows that are written, and activations, are left out.
constexpr Parts<double> traffic(const ModelSizes& m, const Step& step) {
  step.check();
  Parts<double> parts;
  const Dim always = m.sum([&](const LayerSizes& l) { return layer_bytes(l, m.weights); });
  parts.linear = static_cast<double>(
      exact_sum(always, m.weights.matrices.bytes_of(m.input.matrices + m.output_norm.matrices),
                m.weights.vectors.bytes_of(m.input.vectors + m.output_norm.vectors)));
  for (int i = 0; i < m.size; ++i) {
    const auto& [layer, count] = m.groups[static_cast<std::size_t>(i)];
    const FeedForwardNumbers& f = layer.feed_forward;
    parts.linear += static_cast<double>(count) *
                    expected_experts(f.experts, f.used, step.all_tokens()) *
                    static_cast<double>(expert_bytes(layer, m.weights));
  }
  parts.attention =
      static_cast<double>(exact_product(step.batch, cache_traffic(m, step.tokens, step.context)));
  parts.unembedding = static_cast<double>(output_bytes(m));
  return parts;
}
// FLOPs per byte of each part, and of the whole.
constexpr Parts<double> intensities(const ModelSizes& m, const Step& step) {
  const Parts<Dim> f = flops(m, step);
  const Parts<double> b = traffic(m, step);
  const auto ratio = [](Dim over, double under) {
    return under == 0 ? 0 : static_cast<double>(over) / under;
  };
  return {ratio(f.linear, b.linear), ratio(f.attention, b.attention),
          ratio(f.unembedding, b.unembedding)};
}
constexpr double intensity(const ModelSizes& m, const Step& step) {
  return static_cast<double>(flops(m, step).total()) / traffic(m, step).total();
}

}  // namespace tenon::inline TENON_ABI::cost
