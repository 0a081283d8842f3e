#pragma once
// A model as the numbers that its cost follows from, and what it holds: parameters, bytes of
// weights, bytes of cache. Everything is constexpr and exact.
#include <array>
#include <string_view>

#include "../core/layer_numbers.hpp"
#include "element.hpp"

namespace tenon::inline TENON_ABI::cost {

// One layer's cached rows.
struct CacheSizes {
  Dim row_bytes = 0;  // of all planes; of the owner's rows for a layer that reads another's
  bool owns = true;
  Dim reach = 0;      // newest rows that a window sees; 0: all
  Dim first = 0;      // first rows that it sees besides
  Dim page_rows = 0;  // rows of a page; 0: not paged
  int store = 0;      // layers of one store share one table of pages for each sequence
  Dim state_value_bytes = 4;
  constexpr bool operator==(const CacheSizes&) const = default;

  // Of `context` rows, how many a sequence keeps.
  constexpr Dim rows(Dim context) const {
    return reach == 0 || reach + first > context ? context : reach + first;
  }
};

struct LayerSizes {
  MixerNumbers mixer{};
  FeedForwardNumbers feed_forward{};
  Values residual{};  // norms, and what else stands between mixer and feed-forward
  CacheSizes cache{};
  constexpr bool operator==(const LayerSizes&) const = default;
};

// What weights are stored in.
struct WeightElements {
  Element matrices = elements::bf16, experts = elements::bf16, embedding = elements::bf16,
          output = elements::bf16, vectors = elements::bf16;
  static constexpr WeightElements all(Element e) { return {e, e, e, e, e}; }
  // Of matrices that are kept transposed; a mixture of floats (average_mixtures) is as it is.
  constexpr Element transposed() const {
    return matrices.block == 1 || matrices.bits_per_value() >= 16 ? matrices : elements::f32;
  }
};

// Equal layers are one group. The order of layers does not change what they cost.
struct ModelSizes {
  static constexpr int most = 64;  // distinct layers
  struct Group {
    LayerSizes layer{};
    Dim count = 0;
  };

  Dim width = 0, vocab = 0;
  bool tied = false;              // the output matrix is the embedding
  Values input{}, output_norm{};  // input: besides the embedding
  Dim looked_up = 0;  // values of matrices besides the embedding of which tokens look up rows
  WeightElements weights{};
  std::array<Group, most> groups{};
  int size = 0;

  // CapacityError when there are more distinct layers than `most`.
  constexpr void add(const LayerSizes& layer, Dim count = 1) {
    for (int i = 0; i < size; ++i) {
      Group& group = groups[static_cast<std::size_t>(i)];
      if (group.layer == layer) {
        group.count += count;
        return;
      }
    }
    if (size == most) {
      fail<CapacityError>("a model must have at most ", most,
                          " distinct layers for its cost to be known, it has more; give those "
                          "that hardly differ the same sizes");
    }
    groups[static_cast<std::size_t>(size++)] = {layer, count};
  }
  constexpr Dim layers() const {
    Dim count = 0;
    for (const Group& group : groups) count += group.count;
    return count;
  }
  // The sum over all layers of fn(layer).
  template <class Fn>
  constexpr Dim sum(Fn&& fn) const {
    Dim total = 0;
    for (int i = 0; i < size; ++i) {
      const Group& group = groups[static_cast<std::size_t>(i)];
      total = exact_sum(total, exact_product(group.count, fn(group.layer)));
    }
    return total;
  }
};

namespace detail {
constexpr void check_not_negative(std::string_view name, Dim n) {
  if (n < 0) fail<RequestError>(name, " must be at least 0, it is ", n, "; count from 0");
}
constexpr void check_heads(Dim heads, Dim kv_heads, Dim share) {
  if (kv_heads < 1 || heads < 1 || heads % kv_heads != 0 || share < 1) {
    fail<RequestError>(
        "query heads must be a multiple of the heads of keys and values, and at least 1 layer must "
        "share rows, they are ",
        heads, ", ", kv_heads, " and ", share, "; choose kv_heads that divide the heads");
  }
}
}  // namespace detail

// Sizes of a decoder whose layers are all alike: gated feed-forward, RMS norms.
struct DenseSizes {
  Dim width = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, layers = 0, vocab = 0;
  bool tied = false;
  bool norms = true;  // false: not counted, as in textbook formulas
  Dim window = 0, sinks = 0;
  Dim share = 1;  // as many neighbours share keys and values (arXiv 2405.12981)
  Dim page_rows = 0;
  Element weights = elements::bf16, cache = elements::bf16;
};
// RequestError when kv_heads do not divide heads.
constexpr ModelSizes dense(const DenseSizes& s) {
  detail::check_heads(s.heads, s.kv_heads, s.share);
  ModelSizes model;
  model.width = s.width;
  model.vocab = s.vocab;
  model.tied = s.tied;
  model.weights = WeightElements::all(s.weights);
  model.output_norm.vectors = s.norms ? s.width : 0;
  LayerSizes layer;
  layer.feed_forward = mlp_numbers(s.width, s.hidden);
  layer.residual.vectors = s.norms ? 2 * s.width : 0;
  layer.cache.row_bytes = 2 * s.cache.bytes_of(exact_product(s.kv_heads, s.head_dim));
  layer.cache.reach = s.window;
  layer.cache.first = s.sinks;
  layer.cache.page_rows = s.page_rows;
  const Dim owners = (s.layers + s.share - 1) / s.share;
  for (const bool owns : {true, false}) {
    layer.cache.owns = owns;
    layer.mixer = attention_numbers(s.width, s.heads, s.kv_heads, s.head_dim, owns);
    const Dim count = owns ? owners : s.layers - owners;
    if (count > 0) model.add(layer, count);
  }
  return model;
}

// Values of matrices, of norms and biases, and of both: how many, not bytes.
constexpr Values values(const ModelSizes& m) {
  const Dim embeddings = exact_product(m.tied ? 1 : 2, m.vocab, m.width);
  const auto matrices = [](const LayerSizes& l) {
    const FeedForwardNumbers& f = l.feed_forward;
    return exact_sum(l.mixer.values.matrices, l.residual.matrices, f.always.matrices,
                     exact_product(f.experts, f.expert.matrices));
  };
  const auto vectors = [](const LayerSizes& l) {
    const FeedForwardNumbers& f = l.feed_forward;
    return exact_sum(l.mixer.values.vectors, l.residual.vectors, f.always.vectors,
                     exact_product(f.experts, f.expert.vectors));
  };
  return {
      exact_sum(m.sum(matrices), m.input.matrices, m.output_norm.matrices, m.looked_up, embeddings),
      exact_sum(m.sum(vectors), m.input.vectors, m.output_norm.vectors)};
}
constexpr Dim parameters(const ModelSizes& m) {
  const Values v = values(m);
  return exact_sum(v.matrices, v.vectors);
}
// Those that a token meets: of a mixture, the experts it does not use are left out.
constexpr Dim active_parameters(const ModelSizes& m) {
  return parameters(m) - m.sum([](const LayerSizes& l) {
    const FeedForwardNumbers& f = l.feed_forward;
    return exact_product(f.experts - f.used, exact_sum(f.expert.matrices, f.expert.vectors));
  });
}

// Bytes of a layer's weights but its experts, and of one expert.
constexpr Dim layer_bytes(const LayerSizes& l, const WeightElements& in) {
  return exact_sum(in.matrices.bytes_of(exact_sum(l.mixer.values.matrices, l.residual.matrices,
                                                  l.feed_forward.always.matrices)),
                   in.vectors.bytes_of(exact_sum(l.mixer.values.vectors, l.residual.vectors,
                                                 l.feed_forward.always.vectors)));
}
constexpr Dim expert_bytes(const LayerSizes& l, const WeightElements& in) {
  return exact_sum(in.experts.bytes_of(l.feed_forward.expert.matrices),
                   in.vectors.bytes_of(l.feed_forward.expert.vectors));
}
constexpr Dim output_bytes(const ModelSizes& m) {
  const Element in = m.tied ? m.weights.embedding : m.weights.output;
  return in.bytes_of(exact_product(m.vocab, m.width));
}
// Bytes of all weights. A matrix whose rows do not fill blocks of its format is a few bytes more.
constexpr Dim weight_bytes(const ModelSizes& m) {
  const Dim in_layers = m.sum([&](const LayerSizes& l) {
    return exact_sum(layer_bytes(l, m.weights),
                     exact_product(l.feed_forward.experts, expert_bytes(l, m.weights)));
  });
  const Dim embedding = exact_sum(m.weights.embedding.bytes_of(exact_product(m.vocab, m.width)),
                                  m.weights.matrices.bytes_of(m.looked_up));
  return exact_sum(in_layers,
                   m.weights.matrices.bytes_of(m.input.matrices + m.output_norm.matrices),
                   m.weights.vectors.bytes_of(m.input.vectors + m.output_norm.vectors), embedding,
                   m.tied ? 0 : output_bytes(m));
}

// Capacity: bytes that one sequence of `context` tokens keeps resident. A window keeps its rows,
// layers that read another's keep none, pages are whole and listed in a table of 4 bytes each.
// RequestError when there are less than no tokens.
constexpr Dim cache_bytes(const ModelSizes& m, Dim context) {
  detail::check_not_negative("the context of cache_bytes", context);
  Dim total = 0;
  for (int i = 0; i < m.size; ++i) {
    const auto& [layer, count] = m.groups[static_cast<std::size_t>(i)];
    const CacheSizes& c = layer.cache;
    Dim rows = c.rows(context);
    if (c.page_rows > 0) {
      const Dim pages = (rows + c.page_rows - 1) / c.page_rows;
      rows = exact_product(pages, c.page_rows);
      bool listed = false;
      for (int j = 0; j < i; ++j) {
        const CacheSizes& other = m.groups[static_cast<std::size_t>(j)].layer.cache;
        listed = listed || (other.page_rows > 0 && other.store == c.store);
      }
      if (!listed) total = exact_sum(total, 4 * pages);
    }
    const Dim state = exact_product(layer.mixer.state_values, c.state_value_bytes);
    const Dim kept = exact_sum(c.owns ? exact_product(rows, c.row_bytes) : 0, state);
    total = exact_sum(total, exact_product(count, kept));
  }
  return total;
}
// Bytes that one more token adds while no window is full and no page is counted.
constexpr Dim cache_bytes_per_token(const ModelSizes& m) {
  return m.sum([](const LayerSizes& l) { return l.cache.owns ? l.cache.row_bytes : 0; });
}
// Bytes of recurrent state of a sequence, whatever its length.
constexpr Dim state_bytes(const ModelSizes& m) {
  return m.sum([](const LayerSizes& l) {
    return exact_product(l.mixer.state_values, l.cache.state_value_bytes);
  });
}
// Bytes of weights, of those that a model keeps a second time, and of `batch` sequences.
constexpr Dim resident_bytes(const ModelSizes& m, Dim batch, Dim context) {
  detail::check_not_negative("the batch of resident_bytes", batch);
  const Dim copies = m.sum([&](const LayerSizes& l) {
    return m.weights.transposed().bytes_of(l.mixer.transposed_copy);
  });
  return exact_sum(weight_bytes(m), copies, exact_product(batch, cache_bytes(m, context)));
}

// Rows of pages that one sequence holds and does not use: at most, and on average over all lengths.
constexpr Dim paged_waste_most(Dim page_rows) {
  return page_rows - 1;
}
constexpr Ratio paged_waste_mean(Dim page_rows) {
  return {page_rows - 1, 2};
}

// Bytes of `rows` rows of `values` values where the newest `residual` stay in `recent` and older
// ones are in `old` (KIVI, arXiv 2402.02750: 2 bits with a scale and a zero for 32 is {32, 12}).
constexpr Dim residual_cache_bytes(Dim rows, Dim values, Dim residual, Element old,
                                   Element recent = elements::f16) {
  const Dim kept = rows < residual ? rows : residual;
  return exact_sum(exact_product(rows - kept, old.bytes_of(values)),
                   exact_product(kept, recent.bytes_of(values)));
}

}  // namespace tenon::inline TENON_ABI::cost
