#pragma once
// The audit of the cost model: units that include this count, before anything else of the library
// is included; they run steps, and what the kernels counted must be what cost/ predicts from the
// type and the sizes, as integers.
#define TENON_COUNT_COST

#include <array>

#include "catch.hpp"
#include "laws/compositions.hpp"
#include "tenon/core/cost_counter.hpp"
#include "tenon/core/thread_team.hpp"
#include "tenon/cost/composition.hpp"
#include "tenon/cost/step.hpp"
#include "tenon/model/config_storage.hpp"
#include "tenon/quant/k_quants.hpp"
#include "tenon/quant/named_formats.hpp"

namespace audit {

using namespace tenon;
using WeightFormats = AnyOf<F32, Q8_0, Q4_0, Q4_K>;
using CacheFormats = AnyOf<F32, F16, Q8_0, Q4_0>;

template <class Layer, auto Plan = Uniform{}>
using Composed = Decoder<Kinds<Layer>, Plan, WeightFormats>;

// Sizes that fill whole blocks of every format, 256 values the largest, and whole tiles.
inline std::vector<random_source::Key> sizes(std::vector<random_source::Key> more) {
  std::vector<random_source::Key> keys{
      {"embedding_length", 256},    {"block_count", 2},
      {"feed_forward_length", 256}, {"vocab_size", 64},
      {"attention.head_count", 4},  {"attention.layer_norm_rms_epsilon", 1e-5}};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

inline CountedCost counted(CostPart part) {
  return CostCounter::of(part);
}

// One model whose weights are stored in `format`.
template <class M>
class Audited {
 public:
  explicit Audited(const std::vector<random_source::Key>& keys, std::string format = "f32",
                   const std::vector<std::string>& with = {"output"})
      : Audited(random_source::Source::of<M>(keys, with), std::move(format), with.empty()) {}
  Audited(random_source::Source source, std::string format, bool tied)
      : source_(std::move(source)),
        format_(std::move(format)),
        tied_(tied),
        model_(M::bind(source_, serial(), {.quantize = &find_weight_format(format_)})) {}

  cost::ModelSizes sizes(const std::string& cache) const {
    const ConfigStorage storage(source_);
    const std::size_t slash = cache.find('/');
    return cost::sizes_of<M>(
        storage.view(), {.weights = format_,
                         .keys = std::string_view(cache).substr(0, slash),
                         .values = slash == cache.npos ? std::string_view()
                                                       : std::string_view(cache).substr(slash + 1),
                         .tied = tied_});
  }

  // Steps of `chunks` new tokens for each of `batch` sequences. The last row of each wants logits
  // in every other step, no row in those between.
  void check(const std::string& cache, int batch, const std::vector<int>& chunks,
             Activations activations = Activations::int8, bool causal = true) {
    const cost::ModelSizes m = sizes(cache);
    auto session = open(cache, batch, activations, serial());
    const std::vector<SeqId> seqs = sequences(session, batch);
    Dim context = 0;
    bool wants = true;
    for (const int chunk : chunks) {
      context += chunk;
      INFO(format_ << ", cache " << cache << ", batch " << batch << ", " << chunk << " of "
                   << context);
      cost::Step step{batch, chunk, context};
      step.causal = causal;
      if (!wants) step.logit_rows = 0;
      run(session, seqs, std::vector<int>(seqs.size(), chunk), wants);
      compare(cost::flops(m, step), cost::traffic(m, step, cost::cpu_blocks));
      // A token alone reads each row that it sees once, and nothing but rows that it sees, unless
      // first and newest ones lie in one tile.
      if (chunk == 1 && m.groups[0].layer.cache.first == 0) {
        CHECK(counted(CostPart::attention).bytes == batch * cost::cache_traffic(m, 1, context));
      }
      wants = !wants;
    }
  }

  // The parts of one step of these new tokens, after `before` ones, of each sequence.
  void run_step(const std::string& cache, const std::vector<int>& before,
                const std::vector<int>& counts, Executor& team) {
    auto session = open(cache, static_cast<int>(counts.size()), Activations::int8, team);
    const std::vector<SeqId> seqs = sequences(session, static_cast<int>(counts.size()));
    run(session, seqs, before, false);
    run(session, seqs, counts, true);
  }

  static void compare(const cost::Parts<Dim>& flops, const cost::Parts<double>& bytes) {
    CHECK(counted(CostPart::linear).flops == flops.linear);
    CHECK(counted(CostPart::attention).flops == flops.attention);
    CHECK(counted(CostPart::unembedding).flops == flops.unembedding);
    CHECK(counted(CostPart::linear).bytes == static_cast<Dim>(bytes.linear));
    CHECK(counted(CostPart::attention).bytes == static_cast<Dim>(bytes.attention));
    CHECK(counted(CostPart::unembedding).bytes == static_cast<Dim>(bytes.unembedding));
  }
  static SerialExecutor& serial() {
    static SerialExecutor executor;
    return executor;
  }

 private:
  auto open(const std::string& cache, int batch, Activations activations, Executor& team) const {
    return model_.open({.seqs = batch, .context = 512, .step_tokens = 1024},
                       {.cache = cache, .activations = activations, .executor = &team});
  }
  template <class S>
  static std::vector<SeqId> sequences(S& session, int batch) {
    std::vector<SeqId> seqs;
    for (int i = 0; i < batch; ++i) seqs.push_back(session.open());
    return seqs;
  }
  template <class S>
  void run(S& session, const std::vector<SeqId>& seqs, const std::vector<int>& counts, bool wants) {
    std::vector<Token> tokens;
    std::vector<int> want;
    for (const int count : counts) {
      for (int i = 0; i < count; ++i)
        tokens.push_back(static_cast<Token>((tokens.size() * 7) % 64));
      if (wants) want.push_back(static_cast<int>(tokens.size()) - 1);
    }
    std::vector<float> logits(want.size() * 64);
    CostCounter::clear();
    session.forward({seqs, counts, tokens, {}, {}, want},
                    matrix(logits.data(), static_cast<Dim>(want.size()), 64));
  }

  random_source::Source source_;
  std::string format_;
  bool tied_;
  M model_;
};

}  // namespace audit
