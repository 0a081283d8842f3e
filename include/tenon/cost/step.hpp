#pragma once
// What one forward step does: FLOPs and bytes moved, each of the linear layers, of attention and of
// the unembedding.
#include <algorithm>
#include <type_traits>

#include "../core/attention_tiles.hpp"
#include "model_sizes.hpp"
#include "operation.hpp"

namespace tenon::inline TENON_ABI::cost {

// `batch` sequences with `tokens` new tokens each; `context` rows of each are visible, the new ones
// included. Decode: tokens 1. Prefill: tokens == context.
struct Step {
  Dim batch = 1, tokens = 1, context = 1;
  static constexpr Dim one_each = -1;
  Dim logit_rows = one_each;  // rows that want logits: one of each sequence, another number or none
  bool causal = true;         // false: every new token sees all rows, as textbook formulas have it

  // RequestError when there are no tokens, or more new ones than rows.
  constexpr void check() const {
    if (batch < 1 || tokens < 1 || tokens > context || logit_rows < one_each) {
      fail<RequestError>(
          "a cost::Step must have a batch and tokens of at least 1 and no more "
          "tokens than context, it has ",
          batch, ", ", tokens, " and ", context, "; count new tokens as context");
    }
  }
  constexpr Dim all_tokens() const { return exact_product(batch, tokens); }
  constexpr Dim logits() const { return logit_rows == one_each ? batch : logit_rows; }
};

template <class T>
struct Parts {
  T linear{}, attention{}, unembedding{};
  // Of counts, CapacityError when it is not below 2^63.
  constexpr T total() const {
    if constexpr (std::is_same_v<T, Dim>) {
      return exact_sum(linear, attention, unembedding);
    } else {
      return linear + attention + unembedding;
    }
  }
};

// How attention is cut. A block of query vectors (new tokens of a sequence, times the query heads
// that read the same keys) reads the rows that it sees, the next block reads them again, and
// latents are written out for one head after another, a tile of rows at a time. 0: everything at
// once, the least that can be read.
struct QueryBlocks {
  Dim vectors = 0, tokens = 0, tile = 1;
};
// As this library's kernels cut it on one thread. Several threads cut small steps further.
inline constexpr QueryBlocks cpu_blocks{block_vectors, block_tokens, key_tile};

// What attention of one layer reads of one sequence's cache in a step.
struct RowsRead {
  Dim rows = 0;   // over all blocks
  Dim tiles = 0;  // where latents are written out, how often the matrices for it are read
};

namespace detail {
constexpr bool expands(const LayerSizes& l, Dim tokens) {
  return l.mixer.expand_above > 0 && tokens > l.mixer.expand_above;
}
// Rows that new tokens [first, last) of a sequence see together. First rows and newest ones are
// read one by one, but a tile that holds some of both is read through.
constexpr Dim rows_seen(const CacheSizes& c, Dim first, Dim last, Dim tile) {
  const Dim low = c.reach == 0 ? 0 : (std::max)(Dim{0}, first - c.reach + 1);
  const Dim sinks = (std::min)(c.first, low);
  return sinks > low / tile * tile ? last : sinks + last - low;
}
constexpr Dim tiles_seen(const CacheSizes& c, Dim first, Dim last, Dim tile) {
  const Dim low = c.reach == 0 ? 0 : (std::max)(Dim{0}, first - c.reach + 1) / tile * tile;
  return (last - low + tile - 1) / tile + ((std::min)(c.first, low) + tile - 1) / tile;
}
}  // namespace detail

constexpr RowsRead rows_read(const LayerSizes& l, const Step& step, const QueryBlocks& in = {}) {
  if (l.cache.row_bytes == 0) return {};
  const Dim first = step.context - step.tokens;
  const Dim queries = (std::max)(Dim{1}, l.mixer.key_queries);
  const bool whole = in.vectors == 0;
  if (detail::expands(l, step.tokens)) {
    const Dim rows = detail::rows_seen(l.cache, first, step.context, in.tile);
    if (whole) return {rows, 1};
    return {exact_product(queries, rows),
            detail::tiles_seen(l.cache, first, step.context, in.tile)};
  }
  const Dim heads = whole ? queries : (std::min)(queries, in.vectors);
  const Dim most =
      whole ? step.tokens : (std::min)(in.tokens, (std::max)(Dim{1}, in.vectors / heads));
  RowsRead read;
  for (Dim at = first; at < step.context; at += most) {
    const Dim last = step.causal ? (std::min)(at + most, step.context) : step.context;
    read.rows = exact_sum(read.rows, detail::rows_seen(l.cache, at, last, in.tile));
  }
  read.rows = exact_product(read.rows, (queries + heads - 1) / heads);
  return read;
}

// FLOPs; a multiply-add is two. Norms, activations and rotations are left out.
constexpr Parts<Dim> flops(const ModelSizes& m, const Step& step) {
  step.check();
  const Dim tokens = step.all_tokens();
  Parts<Dim> parts;
  const Dim outside = exact_product(2, tokens, m.input.matrices + m.output_norm.matrices);
  parts.linear = exact_sum(outside, m.sum([&](const LayerSizes& l) {
    const FeedForwardNumbers& f = l.feed_forward;
    const MixerNumbers& x = l.mixer;
    const bool expands = detail::expands(l, step.tokens);
    const Dim met =
        exact_sum(x.values.matrices - (expands ? x.expanded_matrices : 0), l.residual.matrices,
                  f.always.matrices, exact_product(f.used, f.expert.matrices));
    return exact_product(2, tokens, met);
  }));
  parts.attention = m.sum([&](const LayerSizes& l) {
    const MixerNumbers& x = l.mixer;
    const CacheSizes& c = l.cache;
    const Dim reach = c.reach == 0 ? 0 : c.reach + c.first;
    const Dim pairs = query_key_pairs(step.tokens, step.context, reach, step.causal);
    const Dim each = detail::expands(l, step.tokens)
                         ? exact_sum(exact_product(pairs, x.expanded_pair_flops),
                                     exact_product(rows_read(l, step).rows, x.expand_flops))
                         : exact_product(pairs, x.pair_flops);
    return exact_product(step.batch, exact_sum(each, exact_product(step.tokens, x.state_flops)));
  });
  parts.unembedding = exact_product(2, step.logits(), m.vocab, m.width);
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
constexpr Dim cache_traffic(const ModelSizes& m, const Step& step, const QueryBlocks& in = {}) {
  return m.sum([&](const LayerSizes& l) {
    const Dim state = exact_product(2, l.mixer.state_values, l.cache.state_value_bytes);
    return exact_sum(exact_product(rows_read(l, step, in).rows, l.cache.row_bytes), state);
  });
}
constexpr Dim cache_traffic(const ModelSizes& m, Dim tokens, Dim context) {
  return cache_traffic(m, Step{1, tokens, context});
}

// Bytes read from memory: every weight once, of experts those that are expected to be used, and the
// caches of all sequences, with the matrices that write latents out; the output matrix if any row
// wants logits. The new rows that are written, activations, and the rows that tokens look up in the
// embedding are left out.
constexpr Parts<double> traffic(const ModelSizes& m, const Step& step, const QueryBlocks& in = {}) {
  step.check();
  // The matrices that write latents out are read by attention, and not by linear layers then.
  const auto expanding = [&](const LayerSizes& l) {
    return detail::expands(l, step.tokens) ? m.weights.matrices.bytes_of(l.mixer.expanded_matrices)
                                           : 0;
  };
  const auto expanded = [&](const LayerSizes& l) {
    const MixerNumbers& x = l.mixer;
    if (!detail::expands(l, step.tokens)) return Dim{0};
    return exact_sum(m.weights.matrices.bytes_of(x.expanded_matrices - x.transposed_copy),
                     m.weights.transposed().bytes_of(x.transposed_copy));
  };
  Parts<double> parts;
  const Dim always =
      m.sum([&](const LayerSizes& l) { return layer_bytes(l, m.weights) - expanding(l); });
  parts.linear =
      static_cast<double>(exact_sum(always, m.weights.matrices.bytes_of(m.input.matrices),
                                    m.weights.vectors.bytes_of(m.input.vectors)));
  if (step.logits() > 0) {
    parts.linear +=
        static_cast<double>(exact_sum(m.weights.matrices.bytes_of(m.output_norm.matrices),
                                      m.weights.vectors.bytes_of(m.output_norm.vectors)));
    parts.unembedding = static_cast<double>(output_bytes(m));
  }
  for (int i = 0; i < m.size; ++i) {
    const auto& [layer, count] = m.groups[static_cast<std::size_t>(i)];
    const FeedForwardNumbers& f = layer.feed_forward;
    parts.linear += static_cast<double>(count) *
                    expected_experts(f.experts, f.used, step.all_tokens()) *
                    static_cast<double>(expert_bytes(layer, m.weights));
  }
  const Dim each = exact_sum(cache_traffic(m, step, in), m.sum([&](const LayerSizes& l) {
    return exact_product(rows_read(l, step, in).tiles, expanded(l));
  }));
  parts.attention = static_cast<double>(exact_product(step.batch, each));
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
