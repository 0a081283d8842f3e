// The linear kernels, one line per operation, format, instruction set, shape and number of threads:
//   gemv  one token; weights of 256 MB and more in turn, so that they come from memory
//   gemm  128 tokens on one matrix
//   tiny  one token on matrices that stay in the first-level cache: the cost of a call
// Columns: weight GB/s, operations GOP/s (a multiply-add is two), and the share of what this
// machine can do at most, `of_read` of memory bandwidth and `of_peak` of arithmetic (see
// machine_bounds.hpp). Times are the calling thread's processor time. Choose lines with
// --benchmark_filter=gemv/q8_0.
#include <benchmark/benchmark.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "machine_bounds.hpp"
#include "tenon/core/cpu_count.hpp"
#include "tenon/core/thread_team.hpp"
#include "tenon/kernels/linear.hpp"

namespace {

using namespace tenon;
using Formats = AnyOf<F32, F16, Bf16, Q8_0, Q4_0, Q4_1>;

struct Case {
  std::string op;
  int tag = 0;
  Activations activations = Activations::f32;
  Isa isa = Isa::scalar;
  Dim out = 0, in = 0, tokens = 1;
  int threads = 1;
};

bench::MachineBounds& bounds_of(Isa isa) {
  static std::map<Isa, bench::MachineBounds> all;
  return all.try_emplace(isa, isa).first->second;
}

// A matrix of 16 different rows over and over.
PackedMatrix<Formats> weights_of(const Case& c, Executor& team) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<std::size_t>(c.in));
  return FormatList<Formats>::visit(c.tag, [&]<class F>(F) {
    const std::size_t bytes = row_bytes<F>(c.in);
    std::vector<std::byte> rows(static_cast<std::size_t>(c.out) * bytes);
    for (std::size_t r = 0; r < static_cast<std::size_t>(c.out); ++r) {
      if (r >= 16) {
        std::memcpy(rows.data() + r * bytes, rows.data() + r % 16 * bytes, bytes);
        continue;
      }
      for (float& v : row) v = normal(generator);
      encode_row<F>(row.data(), c.in, rows.data() + r * bytes);
    }
    return PackedMatrix<Formats>::pack(c.tag, rows, c.out, c.in, team);
  });
}

void run(benchmark::State& state, const Case& c) {
  ThreadTeam team(c.threads);
  std::vector<PackedMatrix<Formats>> weights;
  weights.push_back(weights_of(c, team));
  const std::size_t bytes = weights[0].bytes();
  const std::size_t footprint = c.op == "gemv" ? std::size_t{256} << 20 : bytes;
  while (weights.size() * bytes < footprint) weights.push_back(weights_of(c, team));

  std::vector<float> x(static_cast<std::size_t>(c.tokens * c.in), 0.5f);
  std::vector<float> y(static_cast<std::size_t>(c.tokens * c.out));
  std::mt19937 generator(2);
  for (float& v : x) v = static_cast<float>(generator() % 1000) * 0.001f - 0.5f;
  AlignedBuffer scratch(static_cast<std::size_t>(QuantizedRows::bytes(c.tokens, c.in)));
  const QuantizedRows quantized = QuantizedRows::carve(scratch.data(), c.tokens, c.in);
  std::size_t next = 0;
  for (auto _ : state) {
    const LinearOutput<Formats> output{&weights[next], matrix(y.data(), c.tokens, c.out)};
    linear<Formats>(team, c.isa, matrix<const float>(x.data(), c.tokens, c.in),
                    std::span(&output, 1), c.activations, quantized);
    benchmark::DoNotOptimize(y.data());
    next = next + 1 == weights.size() ? 0 : next + 1;
  }

  using benchmark::Counter;
  bench::MachineBounds& bounds = bounds_of(c.isa);
  const double calls = static_cast<double>(state.iterations());
  const double read = calls * static_cast<double>(bytes) * 1e-9;
  const double operations = calls * 2e-9 * static_cast<double>(c.out * c.in * c.tokens);
  state.counters["GB/s"] = Counter(read, Counter::kIsRate);
  state.counters["GOP/s"] = Counter(operations, Counter::kIsRate);
  if (c.op == "gemv") {
    const double limit = bounds.read_gbps(c.threads, weights.size() * bytes);
    state.counters["of_read"] = Counter(read / limit, Counter::kIsRate);
  }
  const bool integers = c.activations == Activations::int8;
  const double peak = integers ? bounds.int8_gops(c.threads) : bounds.f32_gflops(c.threads);
  state.counters["of_peak"] = Counter(operations / peak, Counter::kIsRate);
}

void add(const Case& c) {
  const std::string format =
      FormatList<Formats>::visit(c.tag, []<class F>(F) { return std::string(F::name); });
  const std::string name =
      c.op + "/" + format + (c.activations == Activations::int8 ? "/int8/" : "/f32/") +
      std::string(name_of(c.isa)) + "/" + std::to_string(c.out) + "x" + std::to_string(c.in) +
      "/tokens:" + std::to_string(c.tokens) + "/threads:" + std::to_string(c.threads);
  benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& state) { run(state, c); });
}

int add_all() {
  for (const Isa isa : known_isas) {
    if (!supported(isa)) continue;
    for (int tag = 0; tag < FormatList<Formats>::size; ++tag) {
      const bool blocks = tag >= 3;
      // One arithmetic a format: what it is used with. The other instruction sets of f32 are equal.
      const Activations activations = blocks ? Activations::int8 : Activations::f32;
      const bool only_bytes = isa >= Isa::avx512vnni || isa == Isa::dotprod;
      if (only_bytes && !blocks) continue;
      if (isa != Isa::scalar) {
        for (const int threads : {1, usable_cpus()}) {
          add({"gemv", tag, activations, isa, 2048, 8192, 1, threads});
          add({"gemm", tag, activations, isa, 2048, 2048, 128, threads});
          if (usable_cpus() == 1) break;
        }
        for (const Dim tokens : {2, 4, 8, 16})
          add({"gemm", tag, activations, isa, 2048, 2048, tokens});
      }
      for (const auto& [out, in] : {std::pair<Dim, Dim>{64, 64}, {172, 64}, {64, 172}, {512, 64}}) {
        if (!blocks || in % 32 == 0) add({"tiny", tag, activations, isa, out, in});
      }
    }
  }
  return 0;
}
const int added = add_all();

}  // namespace
