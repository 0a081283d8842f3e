// What kernels count is what cost/ predicts: grouped queries, windows, shared layers, in every
// layout and format of cached rows and every kind of weight format.
#include "cost/audit.hpp"

using namespace audit;

namespace {

template <class Mask, class Cache>
using Grouped = Composed<Block<Gqa<GqaSpec{}, Mask, Rope, Cache>, SwiGlu, RmsNorm>>;
template <class Mask, class Cache>
using Shared = Composed<Block<Gqa<GqaSpec{}, Mask, Rope, Cache>, SwiGlu, RmsNorm>, SharedInRuns{2}>;

using Flat = Contiguous<CacheFormats>;
using Pages = Paged<CacheFormats, 16>;
using Rolling = Ring<CacheFormats>;

// A prompt in one step and in several, then decoding.
const std::vector<int> whole{150, 1, 1}, chunks{70, 1, 33, 64, 1, 5, 1};

std::vector<random_source::Key> heads(double kv_heads) {
  return audit::sizes({{"attention.head_count_kv", kv_heads}});
}
std::vector<random_source::Key> window(double rows, double sinks) {
  return audit::sizes({{"attention.head_count_kv", 2},
                       {"attention.sliding_window", rows},
                       {"attention.sink_count", sinks}});
}

}  // namespace

TEST_CASE("audit: as many keys as queries, fewer, and one", "[cost][audit]") {
  for (const double kv_heads : {4, 2, 1}) {
    Audited<Grouped<Causal, Flat>> flat(heads(kv_heads));
    Audited<Grouped<Causal, Pages>> paged(heads(kv_heads));
    for (const char* cache : {"f32", "f16", "q8_0", "q4_0", "f16/q8_0"}) {
      for (const int batch : {1, 3}) {
        flat.check(cache, batch, whole);
        flat.check(cache, batch, chunks);
        paged.check(cache, batch, chunks);
      }
    }
  }
}

TEST_CASE("audit: weights of every kind of format, both arithmetics, tied and not",
          "[cost][audit]") {
  for (const char* format : {"f32", "q8_0", "q4_0", "q4_k"}) {
    Audited<Grouped<Causal, Flat>> untied(heads(2), format), tied(heads(2), format, {});
    for (const Activations activations : {Activations::int8, Activations::f32}) {
      untied.check("f16", 2, chunks, activations);
      tied.check("f16", 2, chunks, activations);
    }
  }
}

TEST_CASE("audit: windows and first rows, contiguous, paged and ring", "[cost][audit]") {
  for (const auto& [rows, sinks] :
       {std::pair{1., 0.}, {20., 0.}, {64., 0.}, {20., 4.}, {90., 3.}}) {
    const auto keys = window(rows, sinks);
    Audited<Grouped<SlidingWindow, Flat>> flat(keys);
    Audited<Grouped<SlidingWindow, Rolling>> ring(keys);
    Audited<Grouped<SlidingWindow, Pages>> paged(keys);
    for (const char* cache : {"f32", "f16", "q8_0"}) {
      flat.check(cache, 2, whole);
      flat.check(cache, 2, chunks);
      ring.check(cache, 2, whole);
      ring.check(cache, 2, chunks);
      paged.check(cache, 2, chunks);
    }
  }
}

TEST_CASE("audit: layers that share keys and values read them again", "[cost][audit]") {
  auto keys = heads(1);
  keys[1].number = 5;  // layers; three own their rows
  Audited<Shared<Causal, Flat>> flat(keys, "q8_0");
  Audited<Shared<Causal, Pages>> paged(keys, "q8_0");
  for (const char* cache : {"f16", "q8_0"}) {
    flat.check(cache, 2, chunks);
    paged.check(cache, 2, chunks);
  }
}

TEST_CASE("audit: every token sees every other", "[cost][audit]") {
  auto keys = heads(2);
  Audited<Grouped<Bidirectional, Flat>> flat(keys);
  for (const int tokens : {1, 16, 100}) flat.check("f16", 2, {tokens}, Activations::int8, false);
}

TEST_CASE("audit: a ragged batch is the sum of its sequences, on any number of threads",
          "[cost][audit]") {
  Audited<Grouped<Causal, Flat>> audited(heads(2));
  const cost::ModelSizes m = audited.sizes("f16");
  const std::vector<int> before{10, 200, 1}, counts{37, 1, 90};
  const Dim tokens = 37 + 1 + 90;
  const cost::Step all{1, tokens, tokens, 3};
  cost::Parts<Dim> flops = cost::flops(m, all);
  cost::Parts<double> bytes = cost::traffic(m, all);
  flops.attention = 0;
  bytes.attention = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const cost::Step alone{1, counts[i], before[i] + counts[i]};
    flops.attention += cost::flops(m, alone).attention;
    bytes.attention += cost::traffic(m, alone, cost::cpu_blocks).attention;
  }
  for (const int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    audited.run_step("f16", before, counts, team);
    audited.compare(flops, bytes);
  }
}
