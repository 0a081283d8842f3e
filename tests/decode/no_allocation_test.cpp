#include <tenon/decode/generate.hpp>

#include <span>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "decode/fake_session.hpp"

namespace {

using namespace tenon;

constexpr int vocab = 500;

TEST_CASE("the counter counts") {
  const std::size_t before = test::allocations_so_far();
  std::vector<int> one(3);
  CHECK(test::allocations_so_far() == before + 1);
}

TEST_CASE("generation allocates as often for 500 tokens as for 5") {
  const std::vector<Token> prompt{1, 2, 3, 4, 5};
  const std::vector<Token> end{vocab};
  const SamplingOptions all{
      .temperature = 0.9, .top_k = 200, .top_p = 0.95, .min_p = 0.001, .seed = 1};
  for (const SamplingOptions& sampling :
       {SamplingOptions{}, SamplingOptions{.temperature = 1, .top_p = 0.999}, all}) {
    fake::Session session(vocab, {.context = 1024, .step_tokens = 2});
    const auto count = [&](int tokens) {
      std::stop_source source;
      std::size_t seen = 0;
      const std::size_t before = test::allocations_so_far();
      const Generation out = generate(session, prompt,
                                      {.max_tokens = tokens,
                                       .end = end,
                                       .is_end = [](Token token) { return token < 0; },
                                       .sampling = sampling,
                                       .log_probabilities = true,
                                       .stop = source.get_token()},
                                      [&](Token) { seen = test::allocations_so_far(); });
      REQUIRE(out.ids.size() == static_cast<std::size_t>(tokens));
      return std::pair{test::allocations_so_far() - before, test::allocations_so_far() - seen};
    };
    const auto [few, few_after] = count(5);
    const auto [many, many_after] = count(500);
    CHECK(few == many);
    CHECK(many_after == 0);  // none after the last callback either
  }
}

TEST_CASE("no allocation from the first token to the last") {
  fake::Session session(vocab, {.context = 300});
  const std::vector<Token> prompt{9, 8, 7};
  std::size_t first = 0;
  std::size_t last = 0;
  generate(session, prompt, {.sampling = {.temperature = 1, .top_k = 40}}, [&](Token) {
    if (first == 0) first = test::allocations_so_far();
    last = test::allocations_so_far();
  });
  CHECK(first > 0);
  CHECK(last == first);
}

TEST_CASE("a sampler allocates when constructed, never when it draws or is set up again") {
  std::vector<float> logits(vocab);
  for (int i = 0; i < vocab; ++i) logits[static_cast<std::size_t>(i)] = static_cast<float>(i % 37);
  DefaultChain chain(vocab, {.temperature = 1});
  const std::size_t before = test::allocations_so_far();
  Token sum = 0;
  for (int i = 0; i < 90; ++i) {
    chain.configure({.temperature = 0.5 + i, .top_k = i * 3, .top_p = 0.999, .seed = 5});
    sum += chain.sample(logits, {.position = i});
  }
  CHECK(test::allocations_so_far() == before);
  CHECK(sum > 0);
}

}  // namespace
