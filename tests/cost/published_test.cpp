// The cost model against numbers that others print: the inference lecture of CS336 (functions
// compute_transformer_stats and compute_transformer_performance_stats of lecture_10.py) and the
// scaling book's chapters on inference. Integers exactly, floats to 1e-12 or to the printed digit.
#include "cost/published.hpp"
#include "catch.hpp"
#include "tenon/cost/serving.hpp"

using namespace tenon;
using namespace tenon::cost;
using namespace tenon::cost::elements;
using namespace published;

namespace {

constexpr Hardware h100 = H100::hardware, v5e = TpuV5e::hardware;

constexpr Load lecture_load(Dim kv_heads, Dim batch) {
  return load_of(lecture(kv_heads), {.batch = batch, .tokens = 1, .context = 1024});
}
struct Row {
  Dim kv_heads, batch, parameters, cache, memory;
  double latency_ms, throughput;
};
constexpr Row lecture_rows[] = {
    {40, 1, 13015449600, 838860800, 26869760000, 8.020823880597, 124.6754716082},
    {40, 64, 13015449600, 838860800, 79717990400, 23.796415044776, 2689.480742354},
    {40, 256, 13015449600, 838860800, 240779264000, 71.874407164179, 3561.768508438},
    {8, 1, 11337728000, 167772160, 22843228160, 6.818874077612, 146.651776909},
    {8, 64, 11337728000, 167772160, 33412874240, 9.973992310448, 6416.688323788},
    {8, 256, 11337728000, 167772160, 65625128960, 19.589590734328, 13068.164795878}};
constexpr bool holds(const Row& row) {
  const ModelSizes m = lecture(row.kv_heads);
  const Load load = lecture_load(row.kv_heads, row.batch);
  return parameters(m) == row.parameters && cache_bytes(m, 1024) == row.cache &&
         resident_bytes(m, row.batch, 1024) == row.memory &&
         same(memory_step_time(load, h100), static_cast<double>(row.memory) / 3.35e12) &&
         same(memory_step_time(load, h100) * 1e3, row.latency_ms) &&
         same(throughput(load, h100), row.throughput) &&
         same(step_time(load, h100), memory_step_time(load, h100));
}
static_assert(holds(lecture_rows[0]) && holds(lecture_rows[1]) && holds(lecture_rows[2]));
static_assert(holds(lecture_rows[3]) && holds(lecture_rows[4]) && holds(lecture_rows[5]));

// The closed form for K = 40: memory 838860800 B + 26030899200.
static_assert(resident_bytes(lecture(40), 7, 1024) == 7 * Dim{838860800} + 26030899200);
static_assert(weight_bytes(lecture(40)) == 26030899200);
static_assert(printed(838860800 / h100.bandwidth, 2.50406e-4, 1e-9));
static_assert(printed(26030899200 / h100.bandwidth, 7.77042e-3, 1e-8));
static_assert(same(throughput(lecture_load(40, 10), h100) * (32 * 10 + 993),
                   10 * 32 * h100.bandwidth / 838860800) &&
              printed(32 * h100.bandwidth / 838860800, 127792.36, 1e-2));
static_assert(resident_bytes(lecture(40), 256, 1024) > 80'000'000'000 &&
              resident_bytes(lecture(40), 64, 1024) < 80'000'000'000);
static_assert(largest_batch(lecture(40), 1024, 80e9) == 64 &&
              largest_batch(lecture(8), 1024, 80e9) == 341);
static_assert(
    printed(throughput(lecture_load(40, 64), h100) / throughput(lecture_load(40, 1), h100), 21.57,
            1e-2) &&
    printed(throughput(lecture_load(40, 256), h100) / throughput(lecture_load(40, 64), h100), 1.324,
            1e-3));
static_assert(printed(throughput_limit(lecture_load(40, 1), h100), 3993.51, 1e-2) &&
              printed(throughput_limit(lecture_load(8, 1), h100), 19967.56, 1e-2));
static_assert(printed(half_throughput_batch(lecture_load(40, 1)), 31.03, 1e-2) &&
              printed(half_throughput_batch(lecture_load(8, 1)), 135.16, 1e-2));
static_assert(cache_bytes(lecture(40), 1024) == 5 * cache_bytes(lecture(8), 1024));
static_assert(parameters(lecture(40)) - parameters(lecture(8)) == 1677721600);
static_assert(parameters(dense(llama2_13b)) == 13015864320 &&
              13015864320 == parameters(lecture(40)) + 81 * 5120);

// The lecture's example of rounding: 5.2342 with a scale of 0.1 and a zero of 4 is 56, read as 5.2.
constexpr int rounded(double x, double scale, int zero) {
  return static_cast<int>(x / scale + 0.5) + zero;
}
static_assert(rounded(5.2342, 0.1, 4) == 56 && same((56 - 4) * 0.1, 5.2));

// Machine balance.
static_assert(static_cast<Dim>(h100.balance() + 0.5) == 295);
static_assert(printed(h100.balance(), 295.22, 1e-2) && printed(v5e.balance(), 240, 1));
static_assert(same(critical_batch(bf16, h100), h100.balance()));
static_assert(printed(critical_batch(int8, v5e), 120, 1) &&
              printed(critical_batch(int4, v5e), 60, 1) &&
              printed(critical_batch(int8, v5e, Arithmetic::int8), 240, 1));

// Parameters, norms included.
static_assert(parameters(dense(llama2_7b)) == 6738415616);
static_assert(parameters(dense(llama2_70b)) == 68976648192);
static_assert(parameters(dense(llama3_8b)) == 8030261248);
static_assert(parameters(dense(llama3_70b)) == 70553706496);
static_assert(parameters(dense(mistral_7b)) == 7241732096);
static_assert(parameters(dense(stories_15m)) == 15191712);
static_assert(parameters(dense(stories_260k)) == 260032);
static_assert(active_parameters(dense(llama2_7b)) == parameters(dense(llama2_7b)));

// Bytes of cache per token, bf16.
static_assert(cache_bytes_per_token(dense(llama2_7b)) == 524288);
static_assert(cache_bytes_per_token(dense(llama2_13b)) == 819200);
static_assert(cache_bytes_per_token(dense(llama2_70b)) == 327680);
static_assert(cache_bytes_per_token(dense(llama3_70b)) == 327680);
static_assert(cache_bytes_per_token(dense(llama3_8b)) == 131072);
static_assert(cache_bytes_per_token(dense(mistral_7b)) == 131072);

// Tables A and B of the book: Llama-2-13B on eight v5e, with the numbers as it rounds them.
struct BookRow {
  double batch, cache_gb, total_gb, step_ms, tokens_per_second;
};
constexpr BookRow table_a[] = {
    {1, 6.7, 32.7, 4.98, 200.61},      {8, 53.6, 79.6, 12.13, 659.30},
    {16, 107.2, 133.2, 20.30, 787.99}, {32, 214.4, 240.4, 36.65, 873.21},
    {64, 428.8, 454.8, 69.33, 923.13}, {240, 1608, 1634, 249.09, 963.53}};
constexpr BookRow table_b[] = {
    {1, 1.34, 27.34, 4.17, 239.94},      {8, 10.72, 36.72, 5.60, 1429.19},
    {16, 21.44, 47.44, 7.23, 2212.48},   {32, 42.88, 68.88, 10.50, 3047.62},
    {64, 85.76, 111.76, 17.04, 3756.62}, {240, 321.6, 347.6, 52.99, 4529.34}};
constexpr bool holds(const BookRow& row, double cache_bytes) {
  const Hardware eight = several(v5e, 8);
  const Load load{13e9, 26e9, cache_bytes, row.batch, 1};
  const double cache = load.batch * load.cache_bytes;
  return same(cache, row.cache_gb * 1e9) && same(cache + load.weight_bytes, row.total_gb * 1e9) &&
         printed(memory_step_time(load, eight) * 1e3, row.step_ms, 1e-2) &&
         printed(load.batch / memory_step_time(load, eight), row.tokens_per_second, 1e-2);
}
constexpr bool hold(const BookRow (&rows)[6], double cache_bytes) {
  for (const BookRow& row : rows) {
    if (!holds(row, cache_bytes)) return false;
  }
  return true;
}
static_assert(hold(table_a, 6.7e9) && hold(table_b, 1.34e9));
static_assert(several(v5e, 8).bandwidth == 6560e9);
static_assert(cache_bytes(dense(llama2_13b), 8192) == 6710886400);
// 133.2 GB fit eight chips of 16 GiB, not eight of 16 GB.
static_assert(133.2e9 < several(v5e, 8).memory && 133.2e9 > 8 * 16e9);

// The book's pop quiz: 30B in int8, computed in bf16 on 16 chips, 8192 tokens of 100 kB.
constexpr Hardware sixteen{"", 0, 16 * 1.97e14, 0, 0, 16 * 8.1e11, 0};
constexpr Load quiz(double batch) {
  return {30e9, 30e9, 819e6, batch, 1};
}
static_assert(printed(memory_step_time(quiz(4), sixteen) * 1e3, 2.5676, 1e-4));
static_assert(same(step_time(quiz(4), sixteen), memory_step_time(quiz(4), sixteen)));
static_assert(printed(256 * 819e6 / sixteen.bandwidth * 1e3, 16.178, 1e-3) &&
              printed(2 * 256 * 30e9 / sixteen.bf16 * 1e3, 4.873, 1e-3) &&
              printed(step_time(quiz(256), sixteen) * 1e3, 21.05, 1e-2));
static_assert(printed(critical_batch(quiz(1), sixteen), 121.6, 1e-1));
static_assert(printed(8192 * 100e3, 819e6, 1e6));

// Llama-3-70B served.
constexpr ModelSizes served(Element cache) {
  DenseSizes s = llama3_70b;
  s.cache = cache;
  return dense(s);
}
static_assert(cache_bytes_per_token(served(int8)) == 163840 &&
              cache_bytes_per_token(served(bf16)) == 327680 &&
              cache_bytes_per_token(served(int4)) == 81920);
static_assert(cache_bytes(served(int8), 32768) == 5368709120);
static_assert(printed(16e9 / v5e.bandwidth * 1e3, 19.51, 1e-2));
static_assert(printed(43 / (0.019 * 512 * 16), 0.276, 1e-3));
// Prefill of 240 tokens through its feed-forward layers.
static_assert(gated_mlp(240, 8192, 28672).flops * 80 ==
              Dim{240} * 2 * 3 * 8192 * 8192 * 7 / 2 * 80);
static_assert(printed(static_cast<double>(gated_mlp(240, 8192, 28672).flops * 80), 2.706e13, 1e10));

// The book's practice model, dense and with 16 experts of which two are used.
constexpr DenseSizes practice{.width = 4096,
                              .hidden = 16384,
                              .heads = 32,
                              .kv_heads = 8,
                              .head_dim = 256,
                              .layers = 64,
                              .vocab = 32128,
                              .tied = true,
                              .norms = false,
                              .weights = int8,
                              .cache = int8};
constexpr ModelSizes practice_experts() {
  const ModelSizes from = dense(practice);
  ModelSizes to = from;
  to.groups[0].layer.feed_forward = experts_numbers(4096, 16384, 16, 2, 0, false);
  return to;
}
static_assert(64 * mlp_numbers(4096, 16384).always.matrices == 12884901888 &&
              64 * attention_numbers(4096, 32, 8, 256).values.matrices == 5368709120 &&
              Dim{4096} * 32128 == 131596288);
static_assert(parameters(dense(practice)) == 18385207296);
static_assert(cache_bytes_per_token(dense(practice)) == 262144);
static_assert(printed(18.385e9 / (16 * 8.1e11) * 1e3, 1.419, 1e-3) &&
              printed(static_cast<double>(weight_bytes(dense(practice))) / sixteen.bandwidth * 1e3,
                      1.419, 1e-3));
static_assert(parameters(practice_experts()) == 211658735616 &&
              active_parameters(practice_experts()) == 31270109184);
static_assert(cache_bytes(practice_experts(), 100) == cache_bytes(dense(practice), 100));
// Of experts alone the critical batch grows by E / k = 8.
static_assert(same(critical_batch(Load{2e9, 16e9, 0, 1, 1}, v5e),
                   8 * critical_batch(Load{2e9, 2e9, 0, 1, 1}, v5e)));

// Rules of thumb of section 1.4: attention's core costs what the four projections cost at T = 2 D,
// and what all matrices of a layer cost at T = 8 D with F = 4 D; H = D / N, K = N.
constexpr Dim core(Dim t, Dim d) {
  return attention(1, t, t, d / 64, d / 64, 64).flops;
}
static_assert(core(2 * 1024, 1024) ==
              2 * 2048 * attention_numbers(1024, 16, 16, 64).values.matrices);
static_assert(core(8 * 1024, 1024) == 2 * 8192 *
                                          (attention_numbers(1024, 16, 16, 64).values.matrices +
                                           mlp_numbers(1024, 4096).always.matrices));

}  // namespace

TEST_CASE("the lecture's form and the book's form agree below the critical batch", "[cost]") {
  const ModelSizes m = dense(llama3_8b);
  for (const Hardware& on : {A100::hardware, H100::hardware, H200::hardware, TpuV5e::hardware}) {
    const double critical = critical_batch(load_of(m, {1, 1, 4096}), on);
    CHECK(same(critical, on.balance()));
    for (const Dim batch : {1, 16, 64}) {
      for (const Dim tokens : {1, 2, 3, 4, 5, 8}) {
        const Load load = load_of(m, {batch, tokens, 4096});
        INFO(on.name << " " << batch << " x " << tokens);
        if (static_cast<double>(batch * tokens) < critical) {
          CHECK(same(step_time(load, on), memory_step_time(load, on)));
        } else {
          CHECK(step_time(load, on) > memory_step_time(load, on));
        }
      }
    }
  }
}

TEST_CASE("a cache pays off past the critical batch where feed-forwards are wide", "[cost]") {
  // FLOPs of a token's feed-forwards, 6 D F L, over bytes of its cache, 4 K H L, against the
  // balance; with D = K H that is 1.5 F against 240.24.
  const auto pays = [](Dim hidden) {
    DenseSizes s = llama2_13b;
    s.hidden = hidden;
    const Dim flops = 6 * s.width * s.hidden * s.layers;
    return static_cast<double>(flops) / static_cast<double>(cache_bytes_per_token(dense(s))) >
           v5e.balance();
  };
  CHECK_FALSE(pays(160));
  CHECK(pays(161));
  CHECK(pays(13824));
}

TEST_CASE("what a machine has room for", "[cost]") {
  const ModelSizes m = dense(llama3_8b);
  for (const Dim context : {1, 1000, 8192}) {
    const Dim batch = largest_batch(m, context, 80e9);
    CHECK(fits(m, batch, context, 80e9));
    CHECK_FALSE(fits(m, batch + 1, context, 80e9));
    const Dim longest = longest_context(m, batch, 80e9);
    CHECK(longest >= context);
    CHECK(fits(m, batch, longest, 80e9));
    CHECK_FALSE(fits(m, batch, longest + 1, 80e9));
  }
  CHECK(largest_batch(m, 1, 16e9) == 0);  // 16.06e9 bytes of weights
  CHECK(longest_context(m, 1, 16e9) == 0);
  CHECK_FALSE(fits<Laptop16G>(m));
  CHECK(fits<H100>(m, 4, 8192));
  CHECK(largest_batch(m, 0, 80e9) == (std::numeric_limits<Dim>::max)());
  CHECK(longest_context(m, 1'000'000'000, 80e9) == 0);  // 2^24 rows of so many are above 2^63
}

TEST_CASE("sizes beyond 2^63 are an error, not a wrong number", "[cost]") {
  DenseSizes s = llama3_8b;
  s.width = Dim{1} << 31;
  s.hidden = Dim{1} << 31;
  CHECK_THROWS_AS(parameters(dense(s)), CapacityError);
  CHECK_THROWS_AS(flops(dense(llama3_8b), {1, 2, 1}), RequestError);
  CHECK_THROWS_AS(flops(dense(llama3_8b), {0, 1, 1}), RequestError);
  CHECK_THROWS_AS(time_to_first_token(dense(llama3_8b), 10, 0, H100::hardware), RequestError);
  CHECK_THROWS_AS(iteration_time(dense(llama3_8b), {3, 9, -1, 0}, H100::hardware), RequestError);
  CHECK_THROWS_AS(cache_bytes(dense(llama3_8b), -1), RequestError);
  CHECK_THROWS_AS(resident_bytes(dense(llama3_8b), -1, 1), RequestError);
  CHECK_THROWS_AS(attention(1, 10, 4, 8, 8, 64, true), RequestError);
  CHECK_THROWS_AS(dense({}), RequestError);
  // Each part of this prefill is below 2^63, their sum is not.
  const Parts<Dim> parts = flops(dense(llama2_13b), {1, 4741000, 4741000});
  CHECK(parts.linear > 0);
  CHECK(parts.attention > 0);
  CHECK_THROWS_AS(parts.total(), CapacityError);
}
