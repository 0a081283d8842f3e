// The compositions that the README shows.
#include "catch.hpp"
#include "model/synthetic.hpp"
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
