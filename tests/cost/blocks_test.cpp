// A step's blocks sum to the step; other attentions change their own part and nothing else.
#include "tenon/cost/blocks.hpp"

#include <map>
#include <string>

#include "catch.hpp"
#include "cost/published.hpp"
#include "tenon/cost/variants.hpp"

using namespace tenon;
using namespace tenon::cost;
using namespace published;

namespace {

struct Sums {
  Dim flops = 0;
  double bytes = 0;
};
constexpr Sums sums(const ModelSizes& m, const Step& step) {
  Sums all;
  each_block(m, step, [&](const BlockCost& block) {
    all.flops += block.flops;
    all.bytes += block.bytes;
  });
  return all;
}
constexpr bool complete(const ModelSizes& m, const Step& step) {
  const Sums all = sums(m, step);
  return all.flops == flops(m, step).total() && same(all.bytes, traffic(m, step).total());
}
static_assert(complete(dense(llama2_13b), {7, 1, 1024}));
static_assert(complete(dense(llama2_13b), {1, 1024, 1024}));
static_assert(complete(dense(stories_260k), {2, 3, 9}));
static_assert(complete(shape_named("mixtral-8x7b"), {3, 1, 100}));
static_assert(complete(shape_named("deepseek-v2"), {3, 1, 100}));

// Llama-2-13B with 8 heads of keys and values, from that with 40.
constexpr ModelSizes grouped = with_attention(dense(llama2_13b), 40, 128, {.kv_heads = 8});
static_assert(parameters(dense(llama2_13b)) - parameters(grouped) == 1677721600);
static_assert(cache_bytes(grouped, 1024) == 167772160);
constexpr ModelSizes whole = with_attention(dense(llama2_13b), 40, 128, {.kv_heads = 40});
static_assert(parameters(whole) == 13015864320 && cache_bytes(whole, 1024) == 838860800);
// Half of the layers own rows, all read them; a window keeps 1024.
constexpr ModelSizes shared =
    with_attention(dense(llama2_13b), 40, 128, {.kv_heads = 8, .share = 2});
static_assert(2 * cache_bytes(shared, 1024) == cache_bytes(grouped, 1024) &&
              cache_traffic(shared, 1, 1024) == cache_traffic(grouped, 1, 1024));
constexpr ModelSizes window =
    with_attention(dense(llama2_13b), 40, 128, {.kv_heads = 8, .reach = 1024});
static_assert(cache_bytes(window, 100000) == cache_bytes(grouped, 1024));
// Latents of 4 H and H / 2 values are 2.25 heads of keys and values (arXiv 2405.04434).
constexpr ModelSizes latent = with_attention(dense(llama2_13b), 40, 128, {.rank = 512, .rope = 64});
static_assert(cache_bytes_per_token(latent) * 8 * 100 == cache_bytes_per_token(grouped) * 225);
// 34 bytes for 32 values.
constexpr ModelSizes bytes =
    with_attention(dense(llama2_13b), 40, 128, {.kv_heads = 8}, Element{32, 34});
static_assert(cache_bytes(bytes, 1024) * 64 == cache_bytes(grouped, 1024) * 34);

}  // namespace

TEST_CASE("another attention needs heads that can share", "[cost]") {
  const ModelSizes m = dense(llama2_13b);
  CHECK_THROWS_AS(with_attention(m, 40, 128, {}), RequestError);
  CHECK_THROWS_AS(with_attention(m, 40, 128, {.kv_heads = 7}), RequestError);
  CHECK_THROWS_AS(with_attention(m, 40, 128, {.kv_heads = 80}), RequestError);
  CHECK_THROWS_AS(with_attention(m, 40, 128, {.kv_heads = 8, .share = 0}), RequestError);
}

TEST_CASE("layers that are alike in a part are one block", "[cost]") {
  const auto names = [](const ModelSizes& m) {
    std::map<std::string, Dim> found;
    each_block(m, {1, 1, 64}, [&](const BlockCost& block) {
      CHECK(found.emplace(block.name, block.layers).second);
      CHECK(block.bytes > 0);
    });
    return found;
  };
  using Found = std::map<std::string, Dim>;
  CHECK(names(dense(llama2_13b)) == Found{{"projections", 40},
                                          {"attention", 40},
                                          {"feed-forward", 40},
                                          {"norms and input", 40},
                                          {"unembedding", 1}});
  // DeepSeek-V2 has one dense layer; its attention is the same everywhere.
  CHECK(names(shape_named("deepseek-v2")) == Found{{"projections", 60},
                                                   {"attention", 60},
                                                   {"feed-forward", 1},
                                                   {"experts", 59},
                                                   {"norms and input", 60},
                                                   {"unembedding", 1}});
}

TEST_CASE("what bounds each block of Llama-2-13B on an H100", "[cost]") {
  const ModelSizes m = dense(llama2_13b);
  const auto bound = [&](const Step& step) {
    std::map<std::string, bool> by_arithmetic;
    each_block(m, step, [&](const BlockCost& block) {
      by_arithmetic[std::string(block.name)] = block.intensity() > H100::hardware.balance();
    });
    return by_arithmetic;
  };
  const auto alone = bound({1, 1, 1024}), many = bound({512, 1, 1024}),
             prompt = bound({1, 1024, 1024});
  for (const auto& [name, arithmetic] : alone) {
    INFO(name);
    CHECK_FALSE(arithmetic);
  }
  // No batch helps attention; what has weights is bound by arithmetic from 296 tokens on.
  CHECK(many.at("projections"));
  CHECK(many.at("feed-forward"));
  CHECK(many.at("unembedding"));
  CHECK_FALSE(many.at("attention"));
  CHECK(prompt.at("projections"));
  CHECK(prompt.at("attention"));
  CHECK_FALSE(prompt.at("unembedding"));  // of one row
  CHECK_FALSE(bound({295, 1, 1024}).at("feed-forward"));
  CHECK(bound({296, 1, 1024}).at("feed-forward"));
}
