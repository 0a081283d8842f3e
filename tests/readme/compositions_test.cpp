// The compositions that the README shows.
#include "catch.hpp"
#include "model/synthetic.hpp"
#include "tenon/model/config_storage.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;

// [compositions]
using Exact = zoo::Llama<Contiguous<F32>, AnyOf<F32, F16>>;  // another cache, fewer formats
using Fixed = zoo::Llama<Contiguous<Q8_0>, Q8_0, zoo::LlamaSizes{.width = 256, .head_dim = 32}>;
using Zoo = Registry<Entry<"llama", Fixed, zoo::Llama<>>>;  // chosen when a file is opened
static_assert(Model<Exact> && Model<Fixed> && Model<AnyModel>);
// [compositions]

TEST_CASE("the README's compositions bind and are chosen by what they pin", "[readme]") {
  const synthetic::Llama small({}), fixed({.width = 256, .head_dim = 32}, Q8_0::ggml_type);
  CHECK(Exact::bind(small).width() == 64);
  CHECK(Fixed::bind(fixed).width() == 256);
  CHECK_THROWS_AS(Fixed::bind(small), ShapeError);
  const auto any_small = Zoo::load(small), any_fixed = Zoo::load(fixed);
  // Fixed has one cache format, so only the other type takes "f32".
  CHECK_NOTHROW(any_small.open({}, {.cache = "f32"}));
  CHECK_THROWS_AS(any_fixed.open({}, {.cache = "f32"}), RequestError);
}

TEST_CASE("the bytes of a cache are known from a configuration alone", "[readme]") {
  const synthetic::Llama small({}), fixed({.width = 256, .head_dim = 32}, Q8_0::ggml_type);
  const ConfigStorage of_small(small), of_fixed(fixed);
  // 2 layers, keys and values of 2 heads: of 16 values of 4 bytes, of 32 values in 34 bytes.
  CHECK(Exact::cache_bytes(of_small.view(), {.context = 128}) == 2 * 2 * 2 * 16 * 4 * 128);
  CHECK(Exact::bind(small).cache_bytes({.context = 128}) == 2 * 2 * 2 * 16 * 4 * 128);
  CHECK(Fixed::cache_bytes(of_fixed.view(), {.seqs = 3, .context = 64}) == 2 * 2 * 2 * 34 * 64 * 3);
  CHECK(zoo::Llama<>::cache_bytes(of_small.view(), {.context = 128}, "f32/f16") ==
        2 * 2 * 16 * (4 + 2) * 128);
  CHECK_THROWS_AS(Fixed::cache_bytes(of_small.view(), {}), ShapeError);
  CHECK_THROWS_AS(Exact::cache_bytes(of_small.view(), {.context = 0}), RequestError);
  CHECK_THROWS_AS(Exact::cache_bytes(ModelConfig{}, {}), LoadError);
}
