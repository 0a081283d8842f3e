#include <tenon/decode/chain.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "decode/contains.hpp"

namespace {

using namespace tenon;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Ids that the steps leave, sorted.
template <class... Steps>
std::vector<Token> left(const std::vector<float>& logits, Steps... steps) {
  Chain<Steps...> chain(static_cast<int>(logits.size()), 0, steps...);
  std::vector<Token> ids;
  for (const Candidate& item : chain.narrow(logits, {}).items()) ids.push_back(item.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}
using Ids = std::vector<Token>;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RequestError& error) {
    return error.what();
  }
  return "no RequestError";
}

// Some logits with many ties.
std::vector<float> rough_logits(int vocab, std::uint64_t seed) {
  std::vector<float> logits(static_cast<std::size_t>(vocab));
  for (int i = 0; i < vocab; ++i) {
    logits[static_cast<std::size_t>(i)] =
        static_cast<float>(std::floor(uniform(seed, i) * 40) / 4 - 5);
  }
  return logits;
}

TEST_CASE("the order of temperature against top-p and min-p is the order of the list") {
  const std::vector<float> logits{3, 2, 1};
  // softmax = .665 .245 .090; with T = .5 first: .867 .117 .016.
  CHECK(left(logits, TopP{0.8}, Temperature{0.5}) == Ids{0, 1});
  CHECK(left(logits, Temperature{0.5}, TopP{0.8}) == Ids{0});
  // min-p .2: ratios 1, .368, .135 as they are, 1, .135, .018 at T = .5.
  CHECK(left(logits, MinP{0.2}, Temperature{0.5}) == Ids{0, 1});
  CHECK(left(logits, Temperature{0.5}, MinP{0.2}) == Ids{0});

  const SamplingOptions options{.temperature = 0.5, .top_p = 0.8};
  CHECK(DefaultChain(3, options).narrow(logits, {}).count() == 2);
  CHECK(Chain(3, options).narrow(logits, {}).count() == 2);
  CHECK((Chain<Temperature, TopK, TopP, MinP>(3, options).narrow(logits, {}).count()) == 1);
}

TEST_CASE("temperature reshapes the distribution") {
  Chain chain(3, 0, Temperature{0.5});
  const std::vector<float> logits{3, 2, 1};
  const std::span<const double> p = chain.narrow(logits, {}).probabilities();
  const double sum = 1 + std::exp(-2.0) + std::exp(-4.0);
  CHECK(p[0] == Approx(1 / sum).epsilon(1e-12));
  CHECK(p[1] == Approx(std::exp(-2.0) / sum).epsilon(1e-12));
  CHECK(p[2] == Approx(std::exp(-4.0) / sum).epsilon(1e-12));
}

TEST_CASE("the ends of every option") {
  const std::vector<float> logits{1, 3, 0, 3, 2};
  const Ids all{0, 1, 2, 3, 4};
  CHECK(left(logits, TopK{0}) == all);
  CHECK(left(logits, TopK{5}) == all);
  CHECK(left(logits, TopK{6}) == all);
  CHECK(left(logits, TopK{(std::numeric_limits<int>::max)()}) == all);
  CHECK(left(logits, TopK{1}) == Ids{1});
  CHECK(left(logits, TopK{3}) == Ids{1, 3, 4});
  CHECK(left(logits, TopP{1}) == all);
  CHECK(left(logits, TopP{0}) == Ids{1});
  CHECK(left(logits, TopP{std::nextafter(1.0, 0.0)}) == all);
  CHECK(left(logits, MinP{0}) == all);
  CHECK(left(logits, MinP{1}) == Ids{1, 3});
  CHECK(left(logits, Temperature{0}) == Ids{1});
  CHECK(left(logits, Temperature{-2}) == Ids{1});
  CHECK(left(logits, Temperature{1}) == all);
  CHECK(left(logits, Temperature{100}) == all);
  // So cold that all but the best underflow.
  CHECK(left(logits, Temperature{1e-300}) == Ids{1, 3});
  CHECK(left({2, 2.5F, -3e38F, 3e38F}, Temperature{1e-3}) == Ids{3});
}

TEST_CASE("ties at a cut go to the lowest ids") {
  const std::vector<float> equal(6, 1.5F);
  CHECK(left(equal, TopK{2}) == Ids{0, 1});
  CHECK(left(equal, TopP{0.5}) == Ids{0, 1, 2});
  CHECK(left(std::vector<float>(5, 0.F), TopP{0.8}) == Ids{0, 1, 2, 3});
  CHECK(left(equal, MinP{1}) == Ids{0, 1, 2, 3, 4, 5});
  CHECK(left(equal, Temperature{0}) == Ids{0});
  CHECK(left({1, 2, 0, 2, 2}, TopK{2}) == Ids{1, 3});
  CHECK(left({0.F, -0.F}, TopK{1}) == Ids{0});
  CHECK(left({-0.F, 0.F}, TopK{1}) == Ids{0});
}

TEST_CASE("top-k and top-p agree with a full sort") {
  const int vocab = GENERATE(1, 2, 50, 300, 5000);
  // Spread over many nats, so that most are ties; crowded within a tenth of one; all the same.
  const float scale = GENERATE(1.F, 0.F, 0.01F);
  std::vector<float> logits = rough_logits(vocab, 7);
  for (int i = 0; i < vocab; ++i) {
    float& x = logits[static_cast<std::size_t>(i)];
    x = scale * (scale < 1 ? x + static_cast<float>(uniform(8, i)) : x);
  }
  std::vector<Token> order(logits.size());
  for (int i = 0; i < vocab; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  const auto best = [&](std::size_t n) {
    Ids ids(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n));
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  for (const int k : {1, 2, 10, 127, 128, 129, 200, 1000, 4999}) {
    CHECK(left(logits, TopK{k}) == best((std::min)(static_cast<std::size_t>(k), logits.size())));
  }
  long double total = 0;
  for (const float x : logits) total += std::exp(static_cast<long double>(x));
  for (const double p : {0.01, 0.3, 0.6, 0.9, 0.99, 0.99999}) {
    long double sum = 0;
    std::size_t n = 0;
    while (n < order.size() && static_cast<double>(sum) < p * static_cast<double>(total)) {
      sum += std::exp(static_cast<long double>(logits[static_cast<std::size_t>(order[n++])]));
    }
    CHECK(left(logits, TopP{p}) == best(n));
  }
}

TEST_CASE("candidates stay in order of ids, and are ranked on demand") {
  Candidates candidates(1000);
  const std::vector<float> logits = rough_logits(1000, 3);
  const auto by_id = [](const Candidate& a, const Candidate& b) { return a.id < b.id; };
  const auto in_order = [&] {
    return std::is_sorted(candidates.items().begin(), candidates.items().end(), by_id);
  };
  candidates.load(logits);
  for (const int n : {1, 5, 128, 129, 900, 1000, 2000}) {
    const std::span<const Candidate> ranked = candidates.ranked(n);
    CHECK(ranked.size() == static_cast<std::size_t>((std::min)(n, 1000)));
    CHECK(std::is_sorted(ranked.begin(), ranked.end(), ranks_before));
    CHECK(ranked.front().id == candidates.best().id);
    CHECK(in_order());
  }
  candidates.keep_best(700);
  CHECK(in_order());
  candidates.keep_mass(0.9);
  CHECK(in_order());
  candidates.keep_best(100);
  CHECK(in_order());
  CHECK(candidates.count() == 100);
  candidates.keep_if([](const Candidate& item) { return item.id % 2 == 0; });
  CHECK(in_order());
  candidates.keep_best(-3);
  CHECK(candidates.count() == 1);
}

TEST_CASE("every order of the steps keeps at least one candidate") {
  const std::vector<std::vector<float>> rows{
      {5}, {0, 0, 0}, {-inf, 1, -inf}, {3e38F, -3e38F, 0}, {-3e38F, -3e38F}, {1e-45F, 0, -1e-45F}};
  for (const std::vector<float>& row : rows) {
    for (const double p : {0.0, 1e-300, 0.5, 1.0}) {
      for (const double t : {-1.0, 0.0, 1e-300, 0.7, 100.0}) {
        CHECK_FALSE(left(row, TopK{1}, TopP{p}, MinP{p}, Temperature{t}).empty());
        CHECK_FALSE(left(row, Temperature{t}, MinP{p}, TopP{p}, TopK{1}).empty());
        CHECK_FALSE(left(row, MinP{p}, Temperature{t}, TopK{2}, TopP{p}).empty());
      }
    }
  }
}

template <class Sampler>
void refuses_bad_rows(Sampler sampler) {
  const auto draw = [&](std::vector<float> row) {
    return error_of([&] { sampler.sample(row, {}); });
  };
  CHECK_THAT(draw({-inf, -inf, -inf}), contains("all 3 tokens are -inf"));
  CHECK_THAT(draw({0, nan, 1}), contains("token 1") && contains("nan"));
  CHECK_THAT(draw({0, 1, -nan}), contains("token 2") && contains("nan"));
  CHECK_THAT(draw({nan, nan, nan}), contains("token 0"));
  CHECK_THAT(draw({0, 1, inf}), contains("token 2") && contains("inf"));
  const std::vector<float> allowed{-inf, -inf, -7};
  CHECK(sampler.sample(allowed, {}) == 2);
  const std::vector<float> equal{2, 2, 2};
  const Token token = sampler.sample(equal, {});
  CHECK(token >= 0);
  CHECK(token <= 2);
}

TEST_CASE("rows without anything to draw are refused by every sampler and order") {
  refuses_bad_rows(Greedy{});
  refuses_bad_rows(Chain(3, 0));
  refuses_bad_rows(Chain(3, 0, TopK{2}));
  refuses_bad_rows(Chain(3, 0, TopP{0.5}));
  refuses_bad_rows(Chain(3, 0, MinP{0.5}));
  refuses_bad_rows(Chain(3, 0, Temperature{0}));
  refuses_bad_rows(Chain(3, 0, Temperature{2}));
  for (const double t : {0.0, 0.5}) {
    const SamplingOptions options{.temperature = t, .top_k = 2, .top_p = 0.9, .min_p = 0.1};
    refuses_bad_rows(Chain<TopK, TopP, MinP, Temperature>(3, options));
    refuses_bad_rows(Chain<Temperature, MinP, TopP, TopK>(3, options));
    refuses_bad_rows(Chain<MinP, Temperature, TopK, TopP>(3, options));
  }
}

TEST_CASE("a step that excludes everything, or writes NaN, is refused by what it did") {
  const std::vector<float> row{1, 2};
  Chain none(2, 0, [](Candidates& c) { c.keep_if([](const Candidate&) { return false; }); });
  CHECK_THAT(error_of([&] { none.sample(row, {}); }), contains("excluded all 2 candidates"));
  Chain masked(2, 0, [](Candidates& c) { c.transform([](const Candidate&) { return -inf; }); });
  CHECK_THAT(error_of([&] { masked.sample(row, {}); }), contains("excluded all 2 candidates"));
  Chain broken(
      2, 0, [](Candidates& c) { c.transform([](const Candidate&) { return nan; }); },
      Temperature{0});
  CHECK_THAT(error_of([&] { broken.sample(row, {}); }), contains("token 0") && contains("nan"));
  Chain boundless(2, 0, [](Candidates& c) { c.transform([](const Candidate&) { return inf; }); });
  CHECK_THAT(error_of([&] { boundless.sample(row, {}); }), contains("must be finite"));
}

TEST_CASE("a row of another length is refused with both numbers") {
  for (const double t : {0.0, 1.0}) {
    DefaultChain chain(4, {.temperature = t});
    const std::vector<float> row{1, 2, 3};
    CHECK_THAT(error_of([&] { chain.sample(row, {}); }), contains("4") && contains("it has 3"));
  }
  CHECK_THAT(error_of([] { DefaultChain(0, {.temperature = 1}); }), contains("at least 1"));
  CHECK_THAT(error_of([] { Chain(-5, 0, TopK{1}); }), contains("-5"));
  CHECK_THAT(error_of([] { Greedy{}.sample({}, {}); }), contains("-inf"));
}

TEST_CASE("options out of range are refused by name, value and range") {
  const auto refusal = [](const SamplingOptions& o) {
    return error_of([&] { DefaultChain(8, o); });
  };
  CHECK_THAT(refusal({.temperature = nan}), contains("temperature") && contains("nan"));
  CHECK_THAT(refusal({.temperature = inf}), contains("temperature") && contains("inf"));
  CHECK_THAT(refusal({.temperature = -inf}), contains("temperature"));
  CHECK_THAT(refusal({.temperature = 1e30}), contains("up to 100") && contains("1e+30"));
  CHECK_THAT(refusal({.top_k = -1}), contains("top_k") && contains("-1") && contains("use 0"));
  CHECK_THAT(refusal({.top_p = -0.1}), contains("top_p") && contains("-0.1"));
  CHECK_THAT(refusal({.top_p = 1.5}), contains("top_p") && contains("from 0 to 1"));
  CHECK_THAT(refusal({.top_p = nan}), contains("top_p"));
  CHECK_THAT(refusal({.min_p = 2}), contains("min_p"));
  CHECK_THAT(refusal({.min_p = nan}), contains("min_p"));
  CHECK_THAT(error_of([] { Chain(8, 0, TopK{-2}); }), contains("top_k") && contains("-2"));
  CHECK_THAT(error_of([] { Chain(8, 0, TopP{7}); }), contains("top_p"));
  CHECK_NOTHROW(DefaultChain(8, {.temperature = -1, .top_k = 1 << 30, .top_p = 0, .min_p = 1}));
  DefaultChain chain(8, {.temperature = 1, .seed = 5});
  CHECK_THROWS_AS(chain.configure({.top_p = 3, .seed = 6}), RequestError);
  CHECK(chain.seed() == 5);
}

TEST_CASE("greedy takes the best and the lowest id on ties, in every spelling") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> logits = rough_logits(40, seed);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    CHECK(Greedy{}.sample(logits, {}) == best);
    CHECK(Chain(40, seed, Temperature{0}).sample(logits, {}) == best);
    CHECK(Chain(40, SamplingOptions{}).sample(logits, {}) == best);
    CHECK(Chain(40, seed, TopK{1}).sample(logits, {}) == best);
    CHECK(Chain(40, seed, TopP{0}).sample(logits, {}) == best);
    const SamplingOptions options{.top_k = 3, .top_p = 0.5, .min_p = 0.5};
    CHECK(Chain(40, options).narrow(logits, {}).items().front().id == best);
  }
}

// A step of a user's own: no id below the context's position, a stand-in for any rule that looks at
// the sequence.
struct FromPosition {
  void operator()(Candidates& candidates, const DrawContext& at) const {
    candidates.keep_if([&](const Candidate& item) { return item.id >= at.position; });
  }
};
// One that is read from options like the built-in ones.
struct Halved {
  double t = 0;
  static Halved from(const SamplingOptions& o) { return {o.temperature / 2}; }
  void operator()(Candidates& candidates) const { Temperature{t}(candidates); }
};
// One with a state and chance of its own.
struct Counts {
  int calls = 0;
  double chance = 0;
  void operator()(Candidates&, const DrawContext& at) {
    ++calls;
    chance = uniform(at.seed, at.position, 1);
  }
};
static_assert(SamplingStep<FromPosition>);
static_assert(SamplingStep<Counts>);
static_assert(!SamplingStep<int>);
static_assert(Sampler<Greedy> && Sampler<DefaultChain> && Sampler<Chain<FromPosition>>);
static_assert(!Sampler<TopK>);

TEST_CASE("a step from outside the library composes with the built-in ones") {
  const std::vector<float> logits{9, 8, 7, 6, 5};
  Chain chain(5, 0, FromPosition{}, Temperature{0});
  CHECK(chain.sample(logits, {.position = 0}) == 0);
  CHECK(chain.sample(logits, {.position = 3}) == 3);
  CHECK_THROWS_AS(chain.sample(logits, {.position = 5}), RequestError);

  Chain<FromPosition, TopK, Halved> set_up(5, {.temperature = 1, .top_k = 2});
  const std::span<const double> p = set_up.narrow(logits, {.position = 1}).probabilities();
  REQUIRE(p.size() == 2);
  CHECK(p[0] / p[1] == Approx(std::exp(2.0)));

  const std::vector<Token> past{3, 1};
  Ids seen;
  Chain lambda(
      5, 0,
      [&seen](Candidates&, const DrawContext& at) { seen.assign(at.past.begin(), at.past.end()); },
      Temperature{0});
  static_assert(Sampler<decltype(lambda)>);
  lambda.sample(logits, {.position = 2, .past = past});
  CHECK(seen == past);
}

TEST_CASE("a step's own chance follows the seed and the position") {
  const std::vector<float> logits{1, 1};
  double seen[2] = {};
  for (double& chance : seen) {
    Chain chain(2, 77, [&chance](Candidates&, const DrawContext& at) {
      chance = uniform(at.seed, at.position, 1);
    });
    chain.sample(logits, {.position = 12});
  }
  CHECK(seen[0] == uniform(77, 12, 1));
  CHECK(seen[1] == seen[0]);
}

TEST_CASE("draws depend on the seed and the position alone") {
  constexpr int vocab = 50;
  const SamplingOptions options{.temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = 1234};
  const auto row = [](int position) {
    return rough_logits(vocab, 1000 + static_cast<std::uint64_t>(position));
  };
  Ids alone;
  DefaultChain first(vocab, options);
  for (int i = 0; i < 60; ++i) alone.push_back(first.sample(row(i), {.position = i}));

  SECTION("twenty repeats among random neighbours, in any order") {
    for (std::uint64_t round = 0; round < 20; ++round) {
      DefaultChain sampler(vocab, options);
      std::vector<DefaultChain> neighbours;
      for (std::uint64_t n = 0; n < 3; ++n) {
        neighbours.emplace_back(vocab, SamplingOptions{.temperature = 0.5 + static_cast<double>(n),
                                                       .top_k = static_cast<int>(n * 3),
                                                       .min_p = 0.02,
                                                       .seed = round * 3 + n});
      }
      Ids ids;
      for (int i = 0; i < 60; ++i) {
        const int before = static_cast<int>(uniform(round, i, 9) * 4);
        for (int n = 0; n < before && n < 3; ++n) {
          neighbours[static_cast<std::size_t>(n)].sample(row(i + n), {.position = i * 7});
        }
        ids.push_back(sampler.sample(row(i), {.position = i}));
      }
      CHECK(ids == alone);
    }
  }
  SECTION("backwards, and some twice") {
    DefaultChain sampler(vocab, options);
    Ids ids(60);
    for (int i = 59; i >= 0; --i) {
      ids[static_cast<std::size_t>(i)] = sampler.sample(row(i), {.position = i});
      if (i % 3 == 0) sampler.sample(row(i), {.position = i + 100});
    }
    CHECK(ids == alone);
  }
  SECTION("a copy goes on as the original does") {
    DefaultChain sampler(vocab, options);
    for (int i = 0; i < 30; ++i) sampler.sample(row(i), {.position = i});
    DefaultChain copy = sampler;
    for (int i = 30; i < 60; ++i) {
      CHECK(copy.sample(row(i), {.position = i}) == sampler.sample(row(i), {.position = i}));
    }
    Chain counting(vocab, 1, Counts{});
    counting.sample(row(0), {});
    auto counted = counting;
    CHECK(counted.sample(row(1), {.position = 1}) == counting.sample(row(1), {.position = 1}));
  }
  SECTION("one sampler serving requests in turn, all pairs of options in both orders") {
    const std::vector<SamplingOptions> requests{options,
                                                {},
                                                {.temperature = 1},
                                                {.temperature = 2, .top_k = 3, .seed = 9},
                                                {.temperature = 1, .top_p = 0.3},
                                                {.temperature = 1, .min_p = 0.5, .seed = 1234}};
    const auto served = [&](DefaultChain& sampler, const SamplingOptions& request) {
      sampler.configure(request);
      Ids ids;
      for (int i = 0; i < 10; ++i) ids.push_back(sampler.sample(row(i), {.position = i}));
      return ids;
    };
    for (const SamplingOptions& a : requests) {
      DefaultChain lone(vocab, a);
      const Ids expected = served(lone, a);
      for (const SamplingOptions& b : requests) {
        DefaultChain shared(vocab, b);
        CHECK(served(shared, a) == expected);
        served(shared, b);
        CHECK(served(shared, a) == expected);
      }
    }
  }
  SECTION("another seed draws another sequence") {
    SamplingOptions other = options;
    other.seed = 1235;
    DefaultChain sampler(vocab, other);
    Ids ids;
    for (int i = 0; i < 60; ++i) ids.push_back(sampler.sample(row(i), {.position = i}));
    CHECK(ids != alone);
  }
}

TEST_CASE("options that change nothing draw the same token as none") {
  constexpr int vocab = 64;
  for (int i = 0; i < 200; ++i) {
    const std::vector<float> logits = rough_logits(vocab, static_cast<std::uint64_t>(i));
    const Token plain = Chain(vocab, 3).sample(logits, {.position = i});
    CHECK(DefaultChain(vocab, {.temperature = 1, .seed = 3}).sample(logits, {.position = i}) ==
          plain);
    CHECK(DefaultChain(vocab, {.temperature = 1, .top_k = vocab, .top_p = 1, .min_p = 0, .seed = 3})
              .sample(logits, {.position = i}) == plain);
  }
}

TEST_CASE("log-probabilities are of the raw row and belong to the token asked for") {
  const std::vector<float> logits{0, 1, 2, 3};
  // ln(1 + e + e^2 + e^3) = 3.4401896985611953
  CHECK(log_sum_exp(logits) == Approx(3.4401896985611953).epsilon(1e-14));
  double sum = 0;
  for (Token id = 0; id < 4; ++id) {
    CHECK(log_probability(logits, id) == Approx(id - 3.4401896985611953).epsilon(1e-14));
    sum += std::exp(log_probability(logits, id));
  }
  CHECK(sum == Approx(1).epsilon(1e-14));

  // The greedy token has the largest of them, and no setting of the sampler changes the value.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> row = rough_logits(30, seed);
    const Token token = Chain(30, SamplingOptions{}).sample(row, {});
    for (Token id = 0; id < 30; ++id) {
      CHECK(log_probability(row, id) <= log_probability(row, token));
    }
  }
  // Large and small values, and an excluded token.
  CHECK(log_probability(std::vector<float>{1000, 1000}, 1) == Approx(-std::log(2.0)));
  CHECK(log_probability(std::vector<float>{-1000, -1001}, 1) ==
        Approx(-1 - std::log1p(std::exp(-1.0))));
  CHECK(log_probability(std::vector<float>{3e38F, -3e38F}, 0) == 0);
  CHECK(log_probability(std::vector<float>{1, -inf}, 1) == -inf);
  CHECK(log_probability(std::vector<float>{1, -inf}, 0) == 0);
  CHECK_THROWS_AS(log_probability(logits, 4), RequestError);
  CHECK_THROWS_AS(log_probability(logits, -1), RequestError);
  CHECK_THROWS_AS(log_probability(std::vector<float>{1, nan}, 0), RequestError);
  CHECK_THROWS_AS(log_probability(std::vector<float>{-inf, -inf}, 0), RequestError);
  CHECK_THROWS_AS(log_probability({}, 0), RequestError);
}

TEST_CASE("processed probabilities sum to one over what is left") {
  Chain chain(64, SamplingOptions{.temperature = 0.7, .top_k = 10, .top_p = 0.9});
  Candidates& candidates = chain.narrow(rough_logits(64, 5), {});
  CHECK(candidates.count() <= 10);
  double sum = 0;
  for (const double p : candidates.probabilities()) sum += p;
  CHECK(sum == Approx(1).epsilon(1e-14));
}

}  // namespace
