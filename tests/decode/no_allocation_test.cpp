// Counts every operator new of the program, so it is a program of its own.
#include <tenon/decode/generate.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "catch.hpp"
#include "decode/fake_session.hpp"

namespace {
std::atomic<long> allocations{0};
void* counted(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}

namespace {

using namespace tenon;

constexpr int vocab = 500;

TEST_CASE("the counter counts") {
  const long before = allocations;
  std::vector<int> one(3);
  CHECK(allocations == before + 1);
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
      long seen = 0;
      const long before = allocations;
      const Generation out = generate(session, prompt,
                                      {.max_tokens = tokens,
                                       .end = end,
                                       .is_end = [](Token token) { return token < 0; },
                                       .sampling = sampling,
                                       .log_probabilities = true,
                                       .stop = source.get_token()},
                                      [&](Token) { seen = allocations; });
      REQUIRE(out.ids.size() == static_cast<std::size_t>(tokens));
      return std::pair{allocations - before, allocations - seen};
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
  long first = -1;
  long last = -1;
  generate(session, prompt, {.sampling = {.temperature = 1, .top_k = 40}}, [&](Token) {
    if (first < 0) first = allocations;
    last = allocations;
  });
  CHECK(first > 0);
  CHECK(last == first);
}

TEST_CASE("a sampler allocates when constructed, never when it draws or is set up again") {
  std::vector<float> logits(vocab);
  for (int i = 0; i < vocab; ++i) logits[static_cast<std::size_t>(i)] = static_cast<float>(i % 37);
  DefaultChain chain(vocab, {.temperature = 1});
  const long before = allocations;
  Token sum = 0;
  for (int i = 0; i < 90; ++i) {
    chain.configure({.temperature = 0.5 + i, .top_k = i * 3, .top_p = 0.999, .seed = 5});
    sum += chain.sample(logits, {.position = i});
  }
  CHECK(allocations == before);
  CHECK(sum > 0);
}

}  // namespace
