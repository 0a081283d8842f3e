// A bind tells how far it is, in bytes, and stops when it is told to.
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "model/synthetic.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using Catch::Matchers::Contains;
using M = zoo::Llama<Contiguous<F32>, AnyOf<F32, Q8_0>>;

namespace {

std::size_t bytes_of(const TensorSource& source) {
  std::size_t sum = 0;
  for (const TensorInfo& tensor : source.tensors()) sum += tensor.data.size();
  return sum;
}

}  // namespace

TEST_CASE("progress grows from call to call and ends at all bytes of the tensors", "[bind]") {
  // A matrix of 4100 x 512 floats is packed in several parts, by several threads.
  const synthetic::Llama source(
      {.width = 512, .layers = 1, .heads = 8, .kv_heads = 2, .head_dim = 64, .vocab = 4100});
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    std::vector<std::size_t> seen;
    const auto model = M::bind(source, team, {.progress = [&](std::size_t done, std::size_t total) {
                                 CHECK(total == bytes_of(source));
                                 seen.push_back(done);
                                 return true;
                               }});
    CHECK(model.layers() == 1);
    REQUIRE(seen.size() > source.tensors().size());
    for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i - 1] < seen[i]);
    CHECK(seen.back() == bytes_of(source));
  }
}

TEST_CASE("a bind that is told to stop throws Cancelled and can be done again", "[bind]") {
  const synthetic::Llama source({}, Q8_0::ggml_type);
  SerialExecutor serial;
  std::size_t calls = 0;
  static_cast<void>(M::bind(source, serial, {.progress = [&](std::size_t, std::size_t) {
                              ++calls;
                              return true;
                            }}));
  // At the first part, in the middle and at the last.
  for (const std::size_t last : {std::size_t{1}, calls / 2, calls}) {
    std::size_t told = 0;
    CHECK_THROWS_AS(M::bind(source, serial,
                            {.progress = [&](std::size_t, std::size_t) { return ++told < last; }}),
                    Cancelled);
    CHECK(told == last);
  }
  CHECK(M::bind(source, serial).bytes() > 0);
}

TEST_CASE("what the callback throws comes out of the bind", "[bind]") {
  const synthetic::Llama source({}, Q8_0::ggml_type);
  ThreadTeam team(2);
  CHECK_THROWS_WITH(M::bind(source, team, {.progress = [](std::size_t, std::size_t) -> bool {
                              throw std::runtime_error("the window was closed");
                            }}),
                    Contains("the window was closed"));
}
