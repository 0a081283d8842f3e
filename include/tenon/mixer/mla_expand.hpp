#pragma once
// Latent rows written out as the keys and values of one head, tile by tile, for attention over
// them.
#include <array>

#include "../attn/attend.hpp"
#include "../core/cost_counter.hpp"
#include "../kernels/linear.hpp"

namespace tenon::inline TENON_ABI {

// The sizes of an MLA head: C, R, Dn and Dv of the paper (arXiv 2405.04434).
struct MlaDims {
  Dim kv_rank = 0, rope_dim = 0, nope_dim = 0, v_dim = 0;
  constexpr Dim row() const { return kv_rank + rope_dim; }
  constexpr Dim query() const { return nope_dim + rope_dim; }

  // From how many queries on it is cheaper to expand a key and a value once than to let every query
  // attend to the latent: more than C (Dn + Dv) / (2C - Dn - Dv). A number no step has when never.
  constexpr Dim crossover() const {
    const Dim expanded = nope_dim + v_dim;
    const Dim saved = 2 * kv_rank - expanded;
    return saved <= 0 ? Dim{1} << 40 : kv_rank * expanded / saved;
  }
};

namespace detail {

// Scratch of one worker.
struct ExpandScratch {
  float *latents, *keys, *values;  // [key_tile, kv_rank], [key_tile, query], [key_tile, v_dim]
  QuantizedRows quantized;

  static Dim bytes(const MlaDims& d) {
    const Dim floats = key_tile * (d.kv_rank + d.query() + d.v_dim);
    return round_up(floats * Dim{4}, Dim{cache_line}) + QuantizedRows::bytes(key_tile, d.kv_rank);
  }
  static ExpandScratch at(std::byte* memory, const MlaDims& d) {
    ExpandScratch scratch{};
    scratch.latents = reinterpret_cast<float*>(memory);
    scratch.keys = scratch.latents + key_tile * d.kv_rank;
    scratch.values = scratch.keys + key_tile * d.query();
    const Dim floats = key_tile * (d.kv_rank + d.query() + d.v_dim);
    scratch.quantized = QuantizedRows::carve(memory + round_up(floats * Dim{4}, Dim{cache_line}),
                                             key_tile, d.kv_rank);
    return scratch;
  }
};

// Rows of one sequence as plane 0, keys of one head, and plane 1, its values. A RowReader; used by
// one thread, which asks for the rows of one tile after another.
template <RowCache C, class WeightFormats>
class ExpandedRows {
 public:
  using Formats = F32;

  // k_up [nope_dim, kv_rank] and v_up [v_dim, kv_rank] are the head's; `cached` rows exist.
  ExpandedRows(const Cpu& cpu, const C& cache, const MlaDims& dims, int cached,
               const PackedMatrix<WeightFormats>& k_up, const PackedMatrix<WeightFormats>& v_up,
               const ExpandScratch& scratch)
      : cpu_(cpu),
        cache_(cache),
        dims_(dims),
        cached_(cached),
        k_up_(k_up),
        v_up_(v_up),
        scratch_(scratch) {}

  PlaneTags tags() const { return {0, 0}; }
  const std::byte* row(SeqId seq, int slot, int plane, int row) const {
    if (first_ != row) expand(seq, slot, row);
    return reinterpret_cast<const std::byte*>(plane == 0 ? scratch_.keys : scratch_.values);
  }
  int contiguous_from(int row) const { return key_tile - row % key_tile; }
  std::size_t row_stride(int, int plane) const {
    return static_cast<std::size_t>(plane == 0 ? dims_.query() : dims_.v_dim) * sizeof(float);
  }

 private:
  // Rows from `first` to the end of its tile.
  void expand(SeqId seq, int slot, int first) const {
    const RowCodec& codec = row_codec_of<typename C::Formats>(cache_.tags()[0]);
    const int count = (std::min)(contiguous_from(first), cached_ - first);
    for (int i = 0; i < count; ++i) {
      const std::byte* from = cache_.row(seq, slot, 0, first + i);
      codec.load(cpu_.rows(), from, 0, dims_.kv_rank, scratch_.latents + i * dims_.kv_rank);
      codec.load(cpu_.rows(), from, dims_.kv_rank, dims_.rope_dim,
                 scratch_.keys + i * dims_.query() + dims_.nope_dim);
    }
    if constexpr (counts_cost) {
      CostCounter::add(CostPart::attention, 0,
                       count * static_cast<Dim>(cache_.row_stride(slot, 0)));
    }
    const CountAs counted(CostPart::attention);
    const std::array<LinearOutput<WeightFormats>, 2> outputs{
        LinearOutput<WeightFormats>{&k_up_, matrix(scratch_.keys, count, dims_.query())},
        LinearOutput<WeightFormats>{&v_up_, matrix(scratch_.values, count, dims_.v_dim)}};
    SerialExecutor alone;
    linear<WeightFormats>(alone, cpu_.isa(),
                          matrix<const float>(scratch_.latents, count, dims_.kv_rank), outputs,
                          cpu_.activations(), scratch_.quantized);
    first_ = first;
  }

  const Cpu& cpu_;
  const C& cache_;
  const MlaDims& dims_;
  int cached_;
  const PackedMatrix<WeightFormats>&k_up_, &v_up_;
  const ExpandScratch& scratch_;
  mutable int first_ = -1;
};
}  // namespace detail

// Softmax attention of the tokens of one sequence, `seq` of the step, to its rows, whose keys and
// values are written out head by head: queries [count, heads x query], outputs [count, heads x
// v_dim], k_up and v_up [heads]. Threads share the heads.
template <class Formats, RowCache C, Mask M, Score S>
void attend_expanded(Cpu& cpu, const C& cache, int slot, const SeqStep& seq, const MlaDims& dims,
                     std::span<const PackedMatrix<Formats>> k_up,
                     std::span<const PackedMatrix<Formats>> v_up, MatView<const float> queries,
                     MatView<float> outputs, float scale, const M& mask, const S& score) {
  using detail::AttentionScratch;
  using detail::ExpandScratch;
  const auto frame = cpu.workspace().frame();
  const auto heads = static_cast<Dim>(k_up.size());
  const AttentionShape shape{heads, heads, dims.query(), dims.v_dim, 1};
  const Dim floats = round_up(AttentionScratch::floats(shape, seq.count), Dim{16});
  const Dim bytes = round_up(ExpandScratch::bytes(dims), Dim{cache_line});
  auto* memory = cpu.workspace().template take<float>(floats * cpu.threads());
  auto* expanded = cpu.workspace().template take<std::byte>(bytes * cpu.threads());
  if (cpu.measuring()) return;
  if constexpr (ScalesQueries<S>) scale = score.scale(scale);
  const float factor = scale;
  const int cached = seq.base + seq.count;
  cpu.parallel(heads * seq.count * 4096, [&](Worker worker) {
    using Expanded = detail::ExpandedRows<C, Formats>;
    const auto seen = mask_in(mask, seq);
    const auto scratch = AttentionScratch::at(memory + floats * worker.index, shape, seq.count);
    const auto tile = ExpandScratch::at(expanded + bytes * worker.index, dims);
    const Range range = share(heads, worker);
    for (Dim h = range.begin; h < range.end; ++h) {
      const auto at = static_cast<std::size_t>(h);
      const Expanded rows(cpu, cache, dims, cached, k_up[at], v_up[at], tile);
      const detail::AttentionBlock<Expanded, std::remove_const_t<decltype(seen)>, S> block(
          cpu, rows, slot, shape, factor, seen, score, scratch);
      // The keys and values of this head lie where those of the first would.
      block.run({seq.seq, cached, 0, seq.base, seq.count, 0, h, 1}, queries, outputs);
    }
  });
}

}  // namespace tenon::inline TENON_ABI
