// Latent attention against its definition in double, its laws, its cache's cost, and the forms its
// weights may have in a file.
#include "catch.hpp"
#include "mixer/mla_source.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/core/thread_team.hpp"

using namespace tenon;
using Catch::Matchers::Contains;
using weights::normal;
using weights::same_bits;

namespace {

using Rows = AnyOf<F32, F16>;
using Absorbed = Mla<MlaSpec{}, Causal, Yarn, Contiguous<Rows>>;
using Pages = Mla<MlaSpec{}, Causal, Yarn, Paged<Rows, 16>>;
using Expanded = Mla<MlaSpec{.expand = Expand::prefill}, Causal, Yarn, Contiguous<Rows>>;

// The largest difference over the largest value.
double worst(const std::vector<float>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double difference = 0, top = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::fabs(static_cast<double>(got[i]) - want[i]);
    if (!(d <= difference)) difference = d;
    top = (std::max)(top, std::fabs(want[i]));
  }
  return difference / top;
}

}  // namespace

TEST_CASE("the crossover and the bytes of DeepSeek-V2", "[mla]") {
  constexpr MlaDims v2{.kv_rank = 512, .rope_dim = 64, .nope_dim = 128, .v_dim = 128};
  STATIC_REQUIRE(v2.crossover() == 170);  // 131072 / 768 = 170.67
  STATIC_REQUIRE(MlaDims{.kv_rank = 16, .rope_dim = 8, .nope_dim = 16, .v_dim = 16}.crossover() >
                 (Dim{1} << 31));
  const Absorbed::Config config{128, v2, 1536, {}, {}, {}};
  const RowSpec rows = Absorbed::rows(config);
  CHECK(rows.widths == std::array<Dim, 2>{576, 0});
  // 60 layers, 16 bits: 69120 bytes a token.
  const std::vector<RowSpec> layers(60, rows);
  CHECK(Contiguous<F16>::bytes(layers, {.seqs = 1, .context = 4096}, {0, 0}) ==
        std::size_t{4096} * 69120);
}

TEST_CASE("absorbed attention is the attention of the paper", "[mla]") {
  SerialExecutor serial;
  for (const Dim q_rank : {Dim{0}, Dim{28}}) {
    const mla::Source source({.q_rank = q_rank});
    const auto x = normal(150 * 48, 9);
    const auto want = mla::naive(source, x);
    CHECK(worst(mla::run<Absorbed>(source, x, 150, serial), want) <= 1e-5);
    // The definition is sensitive to what the layer must not forget.
    CHECK(worst(mla::run<Absorbed>(source, x, 150, serial), mla::naive(source, x, 1.2)) > 1e-3);
  }
}

TEST_CASE("YaRN's temperature scales the logits", "[mla]") {
  // With so long an original context no frequency is changed, and only the temperature is left.
  mla::Source source({});
  source.edit_metadata().set("deepseek2.rope.scaling.type", "yarn");
  source.edit_metadata().set("deepseek2.rope.scaling.factor", 40.0f);
  source.edit_metadata().set("deepseek2.rope.scaling.yarn_log_multiplier", 0.1f);
  source.put("rope.scaling.original_context_length", 2000000000);
  SerialExecutor serial;
  const auto x = normal(40 * 48, 10);
  const double m = 1 + double(0.1f) * std::log(40.0);
  CHECK(worst(mla::run<Absorbed>(source, x, 40, serial), mla::naive(source, x, m * m)) <= 1e-5);
}

TEST_CASE("chunks, threads, instruction sets and pages change no bit", "[mla][laws]") {
  const mla::Source source({.q_rank = 28});
  const auto x = normal(131 * 48, 11);
  SerialExecutor serial;
  ThreadTeam two(2), three(3);
  for (const int cache : {0, 1}) {
    const auto whole = mla::run<Absorbed>(source, x, 131, serial, Isa::scalar, cache);
    for (const Isa isa : weights::supported_isas()) {
      INFO(name_of(isa) << ", cache " << cache);
      CHECK(same_bits(mla::run<Absorbed>(source, x, 131, serial, isa, cache), whole));
      for (const int chunk : {1, 2, 7, 64}) {
        CHECK(same_bits(mla::run<Absorbed>(source, x, chunk, serial, isa, cache), whole));
      }
    }
    for (const int chunk : {1, 7, 131}) {
      CHECK(same_bits(mla::run<Absorbed>(source, x, chunk, two, choose_isa(), cache), whole));
      CHECK(same_bits(mla::run<Absorbed>(source, x, chunk, three, choose_isa(), cache), whole));
      CHECK(same_bits(mla::run<Pages>(source, x, chunk, two, choose_isa(), cache), whole));
    }
  }
  CHECK_FALSE(same_bits(mla::run<Absorbed>(source, x, 131, serial, choose_isa(), 0),
                        mla::run<Absorbed>(source, x, 131, serial, choose_isa(), 1)));
}

TEST_CASE("expanded attention agrees with absorbed and starts above the crossover", "[mla]") {
  const mla::Source source({});
  REQUIRE(source.sizes.dims.crossover() == 26);  // 40 x 32 / (80 - 32) = 26.67
  SerialExecutor serial;
  ThreadTeam three(3);
  const auto x = normal(150 * 48, 12);
  const auto absorbed = mla::run<Absorbed>(source, x, 150, serial);
  const std::vector<double> close(absorbed.begin(), absorbed.end());
  const auto once = mla::run<Expanded>(source, x, 150, serial);
  CHECK(worst(once, close) <= 1e-5);
  CHECK(worst(once, mla::naive(source, x)) <= 1e-5);
  CHECK_FALSE(same_bits(once, absorbed));
  CHECK(same_bits(mla::run<Expanded>(source, x, 150, three), once));
  // Steps of 100 and 50 tokens both expand the prefix, and in the order of the one step.
  CHECK(same_bits(mla::run<Expanded>(source, x, 100, serial), once));
  CHECK(same_bits(mla::run<Expanded>(source, x, 26, serial), absorbed));
  CHECK_FALSE(same_bits(mla::run<Expanded>(source, x, 27, serial), absorbed));
  const auto halves = mla::run<Expanded>(source, x, 150, serial, choose_isa(), 1);
  CHECK(worst(halves, close) <= 1e-2);
}

TEMPLATE_TEST_CASE("a whole kv_b gives the bits of k_b and v_b", "[mla]", F32, F16, Q8_0) {
  SerialExecutor serial;
  // Rows of 64 latent values, whole blocks.
  const mla::Sizes sizes{.dims = {.kv_rank = 64, .rope_dim = 8, .nope_dim = 12, .v_dim = 20}};
  const mla::Source split(sizes, TestType::ggml_type), whole(sizes, TestType::ggml_type, true);
  const auto x = normal(80 * 48, 13);
  CHECK(same_bits(mla::run<Absorbed>(whole, x, 80, serial),
                  mla::run<Absorbed>(split, x, 80, serial)));
  CHECK(same_bits(mla::run<Expanded>(whole, x, 80, serial),
                  mla::run<Expanded>(split, x, 80, serial)));
  CHECK(worst(mla::run<Absorbed>(whole, x, 80, serial), mla::naive(whole, x)) <= 1e-5);
}

TEST_CASE("sizes that do not belong together are refused by name", "[mla]") {
  SerialExecutor serial;
  const auto x = normal(48, 14);
  const auto refusal = [&](std::string_view key, Dim value) {
    mla::Source source({});
    source.put(key, value);
    try {
      mla::run<Absorbed>(source, x, 1, serial);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("ran");
  };
  CHECK(refusal("attention.q_lora_rank", 0) == "ran");
  CHECK_THAT(refusal("rope.dimension_count", 20), Contains("key_length\" must be 60"));
  CHECK_THAT(refusal("attention.key_length_mla", 21), Contains("attn_q.weight"));
  CHECK_THAT(refusal("attention.key_length", 49), Contains("key_length\" must be 48"));
  CHECK_THAT(refusal("attention.value_length", 41), Contains("value_length\" must be 40"));
  CHECK_THAT(refusal("attention.head_count_kv", 2), Contains("head_count_kv\" must be 1"));
  CHECK_THAT(refusal("attention.kv_lora_rank", 0), Contains("kv_lora_rank"));
  CHECK_THAT(refusal("attention.q_lora_rank", 28), Contains("attn_q_a.weight"));
}
