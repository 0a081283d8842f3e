// Decode speed of the 260K-parameter story model on one thread: sizes read from the file, the same
// code with every size pinned, and that with matrices in Q8_0 (those whose rows are whole blocks: a
// feed-forward layer's last has rows of 172). Needs stories260K.gguf in $TENON_SHARED/models.
//   build/bench/bench_decode --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <type_traits>

#include "machine_bounds.hpp"
#include "tenon/cost/read_bandwidth.hpp"
#include "tenon/quant/weight_format.hpp"
#include "tenon/tenon.hpp"
#include "tenon/zoo/llama.hpp"

namespace {

using namespace tenon;

using RunTime = zoo::Llama<Contiguous<F32>, F32>;
constexpr zoo::LlamaSizes sizes{.width = 64,
                                .layers = 5,
                                .vocab = 512,
                                .heads = 8,
                                .kv_heads = 4,
                                .head_dim = 8,
                                .hidden = 172};
using Pinned = zoo::Llama<Contiguous<F32>, F32, sizes>;
using Quantized = zoo::Llama<Contiguous<F32>, AnyOf<F32, Q8_0>, sizes>;

std::filesystem::path model_file() {
  const char* shared = std::getenv("TENON_SHARED");
  return std::filesystem::path(shared == nullptr ? "../shared" : shared) /
         "models/stories260K.gguf";
}

template <class M>
void decode(benchmark::State& state) {
  constexpr int count = 200;
  if (!std::filesystem::exists(model_file())) {
    state.SkipWithError("stories260K.gguf is absent; set TENON_SHARED");
    return;
  }
  SerialExecutor serial;
  BindOptions binding;
  if (std::is_same_v<M, Quantized>) binding.quantize = &weight_format<Q8_0>;
  const auto model = M::bind(Gguf::open(model_file()), serial, binding);
  auto session = model.open({.seqs = 1, .context = 512, .step_tokens = 8}, {.executor = &serial});
  const Token prompt[] = {1, 403, 407, 261, 378};
  double seconds = 0;
  for (auto _ : state) {
    const Generation result = generate(session, prompt, {.max_tokens = count});
    seconds += result.timings.decode_seconds;
    if (result.ids.size() != count) state.SkipWithError("the story ended early");
  }
  state.counters["decode_tokens/s"] =
      (count - 1) * static_cast<double>(state.iterations()) / seconds;
}
BENCHMARK_TEMPLATE(decode, RunTime)
    ->Name("decode/run_time_sizes")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(decode, Pinned)
    ->Name("decode/pinned_sizes")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(decode, Quantized)
    ->Name("decode/pinned_sizes_q8_0")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The machine's bounds, measured before anything else.
const bool told = [] {
  SerialExecutor serial;
  const Isa isa = choose_isa();
  benchmark::AddCustomContext("instruction set", std::string(name_of(isa)));
  benchmark::AddCustomContext("f32 peak GFLOP/s, one thread",
                              message(bench::MachineBounds().f32_gflops(1)));
  benchmark::AddCustomContext("read GB/s, 1 MB, one thread",
                              message(read_bandwidth(1 << 20, serial, isa) / 1e9));
  benchmark::AddCustomContext("read GB/s, 1 GB, one thread",
                              message(read_bandwidth(std::size_t{1} << 30, serial, isa) / 1e9));
  return true;
}();

}  // namespace
