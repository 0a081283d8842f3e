// What a plan says from the headers alone, against what binding and opening then really take from
// the heap: dense, with experts, with latents, with rings.
#include <cstdlib>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "catch.hpp"
#include "laws/compositions.hpp"
#include "sanitized.hpp"
#include "shared_data.hpp"
#include "tenon/core/shared_pages.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/nn/moe.hpp"

using namespace laws;

namespace {

using Dense = Decoder<Kinds<Block<Gqa<GqaSpec{}, Causal, Rope, Plain>, SwiGlu, RmsNorm>>, Uniform{},
                      AnyOf<F32, F16>>;
using Experts =
    Decoder<Kinds<Block<Gqa<GqaSpec{}, Causal, Rope, Pages<16>>, Moe<MoeSpec{}>, RmsNorm>>,
            Uniform{}, F32>;
using Latents = WithMla<Causal, Plain>;
// Two layers of three see a window, the third everything.
using Mixed = Decoder<Kinds<Block<Gqa<GqaSpec{}, SlidingWindow, Rope, Window>, SwiGlu, RmsNorm>,
                            Block<Gqa<GqaSpec{}, Causal, Rope, Plain>, SwiGlu, RmsNorm>>,
                      Interleave{.period = 3, .rare_at = 2}, F32>;

std::vector<random_source::Key> large(std::vector<random_source::Key> more) {
  more.push_back({"embedding_length", 256});
  more.push_back({"feed_forward_length", 512});
  more.push_back({"vocab_size", 1000});
  more.push_back({"attention.head_count", 8});
  return sizes(std::move(more));
}

// Buffers from 2 MiB on are rounded up to huge pages, whose rest is never touched: here all are
// smaller, so that what the heap hands out is what is used.
#if defined(__GLIBC__) && !defined(TENON_SANITIZED)
constexpr bool counts = true;
std::size_t heap_bytes() {
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}
#else
constexpr bool counts = false;
std::size_t heap_bytes() {
  return 0;
}
#endif

// A place in the run of pages that weights are taken from, for which the heap stands already.
SharedPages::Buffer place_in_run() {
  return SharedPages::take(std::size_t{1} << 20);
}

template <class M>
void check(const std::vector<random_source::Key>& keys, const Limits& limits) {
  const auto source = random_source::Source::of<M>(keys);
  SerialExecutor serial;
  BindOptions outline;
  outline.outline = true;
  for (const std::string_view element : {"f32", "q8_0"}) {
    const SessionOptions options{.cache = element, .executor = &serial};
    const std::size_t empty = heap_bytes();
    const MemoryPlan plan = M::bind(source, serial, outline).memory(limits, options);
    if (counts) CHECK(heap_bytes() - empty < 16384);  // a plan holds nothing
    const SharedPages::Buffer first = place_in_run();
    const std::size_t before = heap_bytes();

    const M model = M::bind(source, serial);
    auto session = model.open(limits, options);
    const std::size_t heap = heap_bytes() - before;
    const SharedPages::Buffer last = place_in_run();
    REQUIRE(last.owner == first.owner);
    const auto run = static_cast<std::size_t>(last.bytes.data() - first.bytes.data());
    const std::size_t held = heap + run - first.bytes.size();

    CHECK(plan.weights == model.bytes());
    CHECK(plan.cache == session.cache_bytes());
    CHECK(plan.workspace == session.workspace_bytes());
    const MemoryPlan bound = model.memory(limits, options);
    CHECK(bound.total() == plan.total());
    std::size_t kinds = 0;
    for (const KindPlan& kind : plan.kinds) kinds += kind.bytes;
    CHECK(kinds == plan.cache);
    if (!counts) continue;
    INFO("planned " << plan.total() << ", held " << held);
    CHECK(static_cast<double>(held) > 0.99 * static_cast<double>(plan.total()));
    CHECK(static_cast<double>(held) < 1.01 * static_cast<double>(plan.total()));
  }
}

}  // namespace

TEST_CASE("memory plan: a dense model") {
  check<Dense>(large({}), {.context = 200, .step_tokens = 32});
  check<Dense>(large({{"block_count", 5}, {"attention.head_count_kv", 2}}),
               {.seqs = 3, .context = 100, .step_tokens = 128});
}

TEST_CASE("memory plan: experts and pages") {
  check<Experts>(large({{"expert_count", 3}, {"expert_used_count", 2}}),
                 {.seqs = 2, .context = 150, .step_tokens = 64, .pool_rows = 200});
}

TEST_CASE("memory plan: latents") {
  check<Latents>(large({{"attention.q_lora_rank", 64},
                        {"attention.kv_lora_rank", 128},
                        {"rope.dimension_count", 16},
                        {"attention.key_length_mla", 48},
                        {"attention.value_length_mla", 32}}),
                 {.context = 256, .step_tokens = 64});
}

TEST_CASE("memory plan: rings beside all rows, by kind") {
  const auto keys = large({{"block_count", 6}, {"attention.sliding_window", 64}});
  check<Mixed>(keys, {.context = 240, .step_tokens = 16});
  const auto source = random_source::Source::of<Mixed>(keys);
  SerialExecutor serial;
  const auto model = Mixed::bind(source, serial);
  const MemoryPlan plan =
      model.memory({.context = 1000, .step_tokens = 16}, {.cache = "f32", .executor = &serial});
  REQUIRE(plan.kinds.size() == 2);
  CHECK(plan.kinds[0].layers == 4);
  CHECK(plan.kinds[0].rows_back == 64);
  CHECK(plan.kinds[1].layers == 2);
  CHECK(plan.kinds[1].rows_back == 0);
  CHECK(plan.kinds[1].bytes == std::size_t{1000} * 2 * 256 * 4 * 2);  // rows, K and V of 256 floats
  CHECK(plan.kinds[0].bytes < plan.kinds[1].bytes / 4);
}

TEST_CASE("memory plan: the longest context that fits") {
  const auto source = random_source::Source::of<Dense>(large({}));
  SerialExecutor serial;
  BindOptions outline;
  outline.outline = true;
  const auto model = Dense::bind(source, serial, outline);
  const SessionOptions options{.cache = "f16", .executor = &serial};
  const std::size_t row = 2 * 2 * 256 * 2;  // layers, K and V, values, bytes
  const Limits limits{.step_tokens = 8};
  const MemoryPlan at_100 = model.memory({.context = 100, .step_tokens = 8}, options);
  CHECK(at_100.cache == 100 * row);
  CHECK(longest_context(model, at_100.total(), limits, options) == 100);
  CHECK(longest_context(model, at_100.total() + row - 1, limits, options) == 100);
  CHECK(longest_context(model, at_100.total() + row, limits, options) == 101);
  CHECK(longest_context(model, at_100.total() - at_100.cache, limits, options) == 0);
  CHECK(longest_context(model, 0, limits, options) == 0);
  CHECK(longest_context(model, std::size_t{1} << 60, limits, options, 5000) == 5000);
  CHECK_THROWS_WITH(model.open(limits, options), Catch::Contains("BindOptions::outline"));
  // Behind the interface of a registry it is the same.
  using All = Registry<Entry<"random", Dense>>;
  const AnyModel any = All::outline(source);
  CHECK(any.memory({.context = 100, .step_tokens = 8}, options).total() == at_100.total());
  CHECK(longest_context(any, at_100.total(), limits, options) == 100);
  CHECK_THROWS_AS(any.open(limits, options), RequestError);
}
