#pragma once
// The tensors of one MLA layer in memory, with seeded random weights, and what they decode to.
#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "kernels/weights.hpp"
#include "tenon/io/tensor_source.hpp"
#include "tenon/mixer/mla.hpp"
#include "tenon/model/config_storage.hpp"
#include "tenon/model/loader.hpp"

namespace mla {

using namespace tenon;
using Formats = AnyOf<F32, F16, Bf16, Q8_0, Q4_0>;

struct Sizes {
  Dim width = 48, heads = 6, q_rank = 0;
  MlaDims dims{.kv_rank = 40, .rope_dim = 8, .nope_dim = 12, .v_dim = 20};
};

class Source final : public TensorSource {
 public:
  // `format` is the ggml type of the matrices; `whole`: k_b and v_b of equal values in one tensor,
  // and the sizes under the keys of older files.
  explicit Source(const Sizes& s, int format = F32::ggml_type, bool whole = false) : sizes(s) {
    const MlaDims& d = s.dims;
    metadata_.set("general.architecture", "deepseek2");
    put("embedding_length", s.width);
    put("block_count", 1);
    put("vocab_size", 2);
    put("attention.head_count", s.heads);
    put("attention.head_count_kv", whole ? s.heads : 1);
    put("attention.q_lora_rank", s.q_rank);
    put("attention.kv_lora_rank", d.kv_rank);
    put("attention.key_length", whole ? d.query() : d.row());
    put("attention.value_length", whole ? d.v_dim : d.kv_rank);
    if (!whole) {
      put("attention.key_length_mla", d.query());
      put("attention.value_length_mla", d.v_dim);
    }
    put("rope.dimension_count", d.rope_dim);
    metadata_.set("deepseek2.attention.layer_norm_rms_epsilon", 1e-5f);
    if (s.q_rank > 0) {
      add("attn_q_a", {s.q_rank, s.width}, format);
      add("attn_q_a_norm", {s.q_rank}, F32::ggml_type);
      add("attn_q_b", {s.heads * d.query(), s.q_rank}, format);
    } else {
      add("attn_q", {s.heads * d.query(), s.width}, format);
    }
    add("attn_kv_a_mqa", {d.row(), s.width}, format);
    add("attn_kv_a_norm", {d.kv_rank}, F32::ggml_type);
    add("attn_output", {s.width, s.heads * d.v_dim}, format);
    // Both forms are cut from the decoded values of the whole one.
    add("attn_kv_b", {s.heads * (d.nope_dim + d.v_dim), d.kv_rank}, format);
    if (!whole) split(format);
  }

  std::string_view origin() const override { return "mla.gguf"; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    for (const TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  Metadata& edit_metadata() { return metadata_; }
  void put(std::string_view key, Dim value) {
    metadata_.set(message("deepseek2.", key), static_cast<std::uint32_t>(value));
  }
  // Decoded values by name; those of attn_kv_b whichever form is stored.
  const std::vector<float>& values(const std::string& name) const {
    return values_.find(name)->second;
  }
  const Sizes sizes;

 private:
  void split(int format) {
    const MlaDims& d = sizes.dims;
    const std::vector<float> both = values_["attn_kv_b"];
    tensors_.pop_back();
    std::vector<float> k, v;
    for (Dim h = 0; h < sizes.heads; ++h) {
      const float* head = both.data() + h * (d.nope_dim + d.v_dim) * d.kv_rank;
      for (Dim c = 0; c < d.kv_rank; ++c) {
        for (Dim n = 0; n < d.nope_dim; ++n) k.push_back(head[n * d.kv_rank + c]);
      }
      v.insert(v.end(), head + d.nope_dim * d.kv_rank, head + (d.nope_dim + d.v_dim) * d.kv_rank);
    }
    // Transposed blocks are other blocks: floats keep what the whole form's blocks decode to.
    const bool dense = format == F32::ggml_type || format == F16::ggml_type;
    store("attn_k_b", {sizes.heads, d.kv_rank, d.nope_dim}, dense ? format : F32::ggml_type, k);
    store("attn_v_b", {sizes.heads, d.v_dim, d.kv_rank}, format, v);
  }
  void add(const std::string& name, std::vector<Dim> shape, int format) {
    Dim n = 1;
    for (const Dim size : shape) n *= size;
    const float scale =
        shape.size() == 1 ? 0.25f : 1.5f / std::sqrt(static_cast<float>(shape.back()));
    auto drawn = weights::normal(n, ++seed_, scale);
    if (shape.size() == 1) {
      for (float& x : drawn) x += 1;
    }
    store(name, std::move(shape), format, drawn);
  }
  void store(const std::string& name, std::vector<Dim> shape, int format,
             const std::vector<float>& drawn) {
    const Dim columns = shape.back(), rows = static_cast<Dim>(drawn.size()) / columns;
    std::vector<std::byte>& bytes = data_.emplace_back();
    std::vector<float>& kept = values_[name];
    kept.resize(drawn.size());
    FormatList<Formats>::visit(tag_of_ggml_type<Formats>(format), [&]<class F>(F) {
      const std::size_t row = row_bytes<F>(columns);
      bytes.resize(row * static_cast<std::size_t>(rows));
      for (Dim r = 0; r < rows; ++r) {
        std::byte* at = bytes.data() + static_cast<std::size_t>(r) * row;
        encode_row<F>(drawn.data() + r * columns, columns, at);
        decode_part<F>(at, 0, columns, kept.data() + r * columns);
      }
    });
    tensors_.push_back({message("blk.0.", name, ".weight"), format, std::move(shape), bytes});
  }

  unsigned seed_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::deque<std::vector<std::byte>> data_;
  std::map<std::string, std::vector<float>> values_;
};

// The layer in double, by its definition: keys and values of every head are written out. x [tokens,
// width]; YaRN's factor on the logits is `temperature`; rotation by the plain frequencies.
inline std::vector<double> naive(const Source& source, const std::vector<float>& x,
                                 double temperature = 1) {
  const auto& [width, heads, q_rank, d] = source.sizes;
  const auto linear = [&](const std::string& name, const std::vector<double>& in, Dim out) {
    const std::vector<float>& w = source.values(name);
    const Dim n = static_cast<Dim>(w.size()) / out;
    std::vector<double> y;
    for (Dim t = 0; t < static_cast<Dim>(in.size()) / n; ++t) {
      for (Dim o = 0; o < out; ++o) {
        double sum = 0;
        for (Dim i = 0; i < n; ++i) {
          sum += static_cast<double>(w[static_cast<std::size_t>(o * n + i)]) *
                 in[static_cast<std::size_t>(t * n + i)];
        }
        y.push_back(sum);
      }
    }
    return y;
  };
  const auto norm = [&](const std::string& name, double* row, Dim n) {
    double squares = 0;
    for (Dim i = 0; i < n; ++i) squares += row[i] * row[i];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + double(1e-5f));
    for (Dim i = 0; i < n; ++i)
      row[i] *= factor * static_cast<double>(source.values(name)[static_cast<std::size_t>(i)]);
  };
  const auto turn = [rope = d.rope_dim](double* row, Dim position) {
    for (Dim i = 0; i < rope; i += 2) {
      const double angle = static_cast<double>(position) *
                           std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(rope));
      const double a = row[i], b = row[i + 1];
      row[i] = a * std::cos(angle) - b * std::sin(angle);
      row[i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  };
  const Dim tokens = static_cast<Dim>(x.size()) / width;
  const Dim query = d.query(), nope = d.nope_dim, rank = d.kv_rank, v_dim = d.v_dim;
  const std::vector<double> in(x.begin(), x.end());
  std::vector<double> q;
  if (q_rank > 0) {
    auto compressed = linear("attn_q_a", in, q_rank);
    for (Dim t = 0; t < tokens; ++t) norm("attn_q_a_norm", compressed.data() + t * q_rank, q_rank);
    q = linear("attn_q_b", compressed, heads * query);
  } else {
    q = linear("attn_q", in, heads * query);
  }
  auto rows = linear("attn_kv_a_mqa", in, d.row());
  std::vector<double> latents;
  for (Dim t = 0; t < tokens; ++t) {
    double* row = rows.data() + t * d.row();
    norm("attn_kv_a_norm", row, rank);
    turn(row + rank, t);
    for (Dim h = 0; h < heads; ++h) turn(q.data() + (t * heads + h) * query + nope, t);
    latents.insert(latents.end(), row, row + rank);
  }
  const Dim both = nope + v_dim;
  const auto kv = linear("attn_kv_b", latents, heads * both);
  std::vector<double> out;
  for (Dim t = 0; t < tokens; ++t) {
    for (Dim h = 0; h < heads; ++h) {
      const double* mine = q.data() + (t * heads + h) * query;
      std::vector<double> weight;
      double total = 0;
      for (Dim j = 0; j <= t; ++j) {
        const double* key = kv.data() + (j * heads + h) * both;
        double score = 0;
        for (Dim i = 0; i < nope; ++i) score += mine[i] * key[i];
        for (Dim i = 0; i < query - nope; ++i)
          score += mine[nope + i] * rows[static_cast<std::size_t>(j * d.row() + rank + i)];
        weight.push_back(std::exp(temperature * score / std::sqrt(static_cast<double>(query))));
        total += weight.back();
      }
      for (Dim i = 0; i < v_dim; ++i) {
        double sum = 0;
        for (Dim j = 0; j <= t; ++j) {
          sum += weight[static_cast<std::size_t>(j)] *
                 kv[static_cast<std::size_t>((j * heads + h) * both + nope + i)];
        }
        out.push_back(sum / total);
      }
    }
  }
  return linear("attn_output", out, width);
}

// Feeds x [tokens, width] to one layer of type M, `chunk` tokens a step.
template <class M>
std::vector<float> run(const Source& source, const std::vector<float>& x, int chunk,
                       Executor& executor, Isa isa = choose_isa(), int cache = 0) {
  using WeightFormats = Formats;
  const ConfigStorage storage(source);
  Loader<WeightFormats> loader(source, executor);
  loader.within("blk.0.");
  typename M::template Weights<WeightFormats> bound;
  bound.read(storage.view(), 0);
  const Dim width = source.sizes.width;
  bound.visit(loader, Axis{width, "embedding_length"}, true);
  loader.refuse_unused();
  const std::vector<RotaryFrequencies> rotaries = loader.take_rotaries();
  const int tokens = static_cast<int>(static_cast<Dim>(x.size()) / width);
  const RowSpec spec = M::rows(bound.config);
  typename M::Store store({&spec, 1}, {.seqs = 1, .context = tokens}, {cache, cache});
  std::vector<float> y(x.size(), 0.0f);
  for (int at = 0; at < tokens; at += chunk) {
    const int count = (std::min)(chunk, tokens - at);
    const SeqStep seq{SeqId{0}, 0, count, at, nullptr, nullptr};
    std::vector<int> positions;
    for (int i = 0; i < count; ++i) positions.push_back(at + i);
    REQUIRE(store.reserve(SeqId{0}, at, count));
    const auto pass = [&](Workspace& work) {
      Cpu cpu(isa, Activations::f32, executor, work);
      std::vector<RotaryAngles> angles;
      for (const RotaryFrequencies& f : rotaries) {
        angles.push_back({f.pairing, f.rope_dim(), cpu.take_matrix(count, f.rope_dim()),
                          cpu.take_matrix(count, f.rope_dim())});
        if (!cpu.measuring()) fill_angles(f, positions, angles.back());
      }
      const LayerStep step{{{&seq, 1}, positions, count}, angles, {}, 0};
      M::forward(cpu, bound, store, Slot{0, true}, step,
                 matrix(x.data() + at * width, count, width),
                 matrix(y.data() + at * width, count, width), false);
    };
    Workspace measure;
    pass(measure);
    Workspace work(measure.peak());
    pass(work);
  }
  return y;
}

}  // namespace mla
