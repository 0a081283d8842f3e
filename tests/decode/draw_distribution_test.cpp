// Chi-square tests of what samplers draw. With k outcomes of known probability the statistic has
// k - 1 degrees of freedom; the thresholds are its quantiles at 1 - 1e-6, from the regularised
// incomplete gamma function: 27.631 for 2 (which is -2 ln 1e-6) and 111.136 for 49. Seeds are
// fixed, so a passing test always passes.
#include <tenon/decode/chain.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "catch.hpp"

namespace {

using namespace tenon;

constexpr int draws = 300000;
constexpr double quantile_2 = 27.631;
constexpr double quantile_49 = 111.136;

// Chi-square of `draws` samples; an id outside `expected` makes it infinite.
template <class Draw>
double chi_square(const std::map<Token, double>& expected, Draw draw) {
  std::map<Token, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[draw(i)];
  double sum = 0;
  for (const auto& [id, count] : counts) {
    if (!expected.contains(id)) return INFINITY;
  }
  for (const auto& [id, p] : expected) {
    const double difference = counts[id] - p * draws;
    sum += difference * difference / (p * draws);
  }
  return sum;
}

std::map<Token, double> softmax(const std::map<Token, double>& logits) {
  double total = 0;
  for (const auto& [id, x] : logits) total += std::exp(x);
  std::map<Token, double> p;
  for (const auto& [id, x] : logits) p[id] = std::exp(x) / total;
  return p;
}

std::vector<float> fifty_logits() {
  std::vector<float> logits;
  for (int i = 0; i < 50; ++i) logits.push_back(static_cast<float>(2 * std::sin(i * 1.7)));
  return logits;
}

TEST_CASE("draws over a vocabulary of 3 follow the softmax") {
  const std::vector<float> logits{std::log(.5F), std::log(.3F), std::log(.2F)};
  const std::map<Token, double> expected{{0, .5}, {1, .3}, {2, .2}};
  SECTION("over positions") {
    for (const std::uint64_t seed : {0ull, 1ull, 0xFFFFFFFFFFFFFFFFull}) {
      Chain chain(3, seed);
      CHECK(chi_square(expected, [&](int i) { return chain.sample(logits, {.position = i}); }) <
            quantile_2);
    }
  }
  SECTION("over seeds") {
    DefaultChain chain(3, {.temperature = 1});
    CHECK(chi_square(expected, [&](int i) {
            chain.configure({.temperature = 1, .seed = static_cast<std::uint64_t>(i)});
            return chain.sample(logits, {.position = 17});
          }) < quantile_2);
  }
  SECTION("a wrong distribution is noticed") {
    Chain chain(3, 0);
    const std::map<Token, double> near{{0, .505}, {1, .295}, {2, .2}};
    CHECK(chi_square(near, [&](int i) { return chain.sample(logits, {.position = i}); }) >
          quantile_2);
  }
}

TEST_CASE("draws over a vocabulary of 50 follow the softmax of the logits over T") {
  const std::vector<float> logits = fifty_logits();
  for (const double t : {0.6, 1.0, 1.8}) {
    std::map<Token, double> scaled;
    for (Token id = 0; id < 50; ++id)
      scaled[id] = static_cast<double>(logits[static_cast<std::size_t>(id)]) / t;
    Chain chain(50, SamplingOptions{.temperature = t, .seed = 99});
    CHECK(chi_square(softmax(scaled),
                     [&](int i) { return chain.sample(logits, {.position = i}); }) < quantile_49);
  }
}

TEST_CASE("truncated draws follow the renormalised softmax of what is left") {
  const std::vector<float> logits = fifty_logits();
  std::vector<Token> order;
  for (Token id = 0; id < 50; ++id) order.push_back(id);
  std::sort(order.begin(), order.end(), [&](Token a, Token b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  std::map<Token, double> top;
  for (const std::size_t i : {0u, 1u, 2u}) {
    top[order[i]] = static_cast<double>(logits[static_cast<std::size_t>(order[i])]) / 0.1;
  }
  Chain chain(50, SamplingOptions{.temperature = 0.1, .top_k = 3, .seed = 4});
  CHECK(chi_square(softmax(top), [&](int i) { return chain.sample(logits, {.position = i}); }) <
        quantile_2);
}

TEST_CASE("successive draws are independent") {
  // Pairs of fair ternary draws at positions 2i and 2i + 1: nine equally likely outcomes.
  // 8 degrees of freedom at 1 - 1e-6: 42.701.
  const std::vector<float> logits{0, 0, 0};
  Chain chain(3, 2024);
  std::map<Token, double> expected;
  for (Token id = 0; id < 9; ++id) expected[id] = 1.0 / 9;
  CHECK(chi_square(expected, [&](int i) {
          const Token a = chain.sample(logits, {.position = 2 * i});
          const Token b = chain.sample(logits, {.position = 2 * i + 1});
          return 3 * a + b;
        }) < 42.701);
}

TEST_CASE("tokens of probability zero are never drawn, at the ends of the unit interval either") {
  Candidates candidates(4);
  const float low = -2000;  // e^-2000 is 0 in double
  candidates.load(std::vector<float>{low, 0, low, -INFINITY});
  CHECK(candidates.count() == 3);
  CHECK(candidates.draw(0) == 1);
  CHECK(candidates.draw(0.5) == 1);
  CHECK(candidates.draw(1 - 0x1p-53) == 1);
  candidates.load(std::vector<float>{0, low, 0, low});
  CHECK(candidates.draw(0) == 0);
  CHECK(candidates.draw(0.5 - 0x1p-53) == 0);
  CHECK(candidates.draw(0.5) == 2);
  CHECK(candidates.draw(1 - 0x1p-53) == 2);
}

}  // namespace
