#include <tenon/decode/score.hpp>

#include <cmath>
#include <span>
#include <stop_token>
#include <vector>

#include "catch.hpp"
#include "decode/contains.hpp"
#include "decode/fake_session.hpp"

namespace {

using namespace tenon;
using Ids = std::vector<Token>;

constexpr int vocab = 24;

Ids some_ids(int n) {
  Ids ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * i + 5 * i + 2) % vocab);
  return ids;
}
std::vector<float> row_after(std::span<const Token> history) {
  std::vector<float> row(vocab);
  fake::hashed_logits(history, row);
  return row;
}
// -ln p of `id` after `history`, the long way round.
double nll_after(std::span<const Token> history, Token id) {
  long double sum = 0;
  const std::vector<float> row = row_after(history);
  for (const float x : row) sum += std::exp(static_cast<long double>(x));
  return static_cast<double>(std::log(sum) - row[static_cast<std::size_t>(id)]);
}

TEST_CASE("score yields every row in order, whatever the chunk") {
  const Ids ids = some_ids(19);
  fake::Session session(vocab, {.context = 20, .step_tokens = 8});
  for (const int chunk : {0, 1, 2, 3, 7, 8}) {
    session.largest_step = 0;
    Dim next = 0;
    score(session, ids, chunk, [&](Dim i, std::span<const float> row) {
      REQUIRE(i == next++);
      const std::span<const Token> history =
          std::span<const Token>(ids).first(static_cast<std::size_t>(i) + 1);
      CHECK(std::vector<float>(row.begin(), row.end()) == row_after(history));
    });
    CHECK(next == 19);
    CHECK(session.largest_step == (chunk == 0 ? 8 : chunk));
    CHECK(session.sequences_open() == 0);
  }
}

TEST_CASE("score refuses what it cannot do before anything runs") {
  fake::Session session(vocab, {.context = 20, .step_tokens = 8});
  const auto ignore = [](Dim, std::span<const float>) {};
  CHECK_THROWS_WITH(score(session, some_ids(3), 9, ignore), contains("8") && contains("9"));
  CHECK_THROWS_AS(score(session, some_ids(3), -1, ignore), RequestError);
  CHECK_THROWS_AS(score(session, Ids{}, 1, ignore), RequestError);
  CHECK_THROWS_AS(score(session, Ids{1, 24}, 1, ignore), RequestError);
  CHECK_THROWS_AS(score(session, some_ids(21), 1, ignore), CapacityError);
  CHECK(session.forwards == 0);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("score can be cancelled and closes its sequence") {
  fake::Session session(vocab, {.context = 20, .step_tokens = 4});
  std::stop_source source;
  int rows = 0;
  CHECK_THROWS_AS(score(
                      session, some_ids(19), 0,
                      [&](Dim, std::span<const float>) {
                        if (++rows == 6) source.request_stop();
                      },
                      source.get_token()),
                  Cancelled);
  CHECK(rows == 8);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("negative log-likelihood in windows, each after one BOS from an empty cache") {
  const Ids ids = some_ids(23);
  fake::Session session(vocab, {.context = 20, .step_tokens = 4});
  for (const int window : {1, 2, 5, 19, 20}) {
    double sum = 0;
    Dim next = 0;
    const NllSum out =
        negative_log_likelihood(session, ids, {.window = window, .bos = 1}, [&](Dim i, double nll) {
          REQUIRE(i == next++);
          const int start = static_cast<int>(i) / window * window;
          Ids history{1};
          history.insert(history.end(), ids.begin() + start,
                         ids.begin() + static_cast<std::ptrdiff_t>(i));
          const double expected = nll_after(history, ids[static_cast<std::size_t>(i)]);
          CHECK(nll == Approx(expected).epsilon(1e-12));
          sum += expected;
        });
    CHECK(out.tokens == 23);
    CHECK(out.sum == Approx(sum).epsilon(1e-12));
    CHECK(out.mean() == Approx(sum / 23).epsilon(1e-12));
    CHECK(out.perplexity() == Approx(std::exp(sum / 23)).epsilon(1e-12));
  }
}

TEST_CASE("without a BOS the first id of each window is only context") {
  const Ids ids = some_ids(11);  // windows of 5, 5 and 1: the last scores nothing
  fake::Session session(vocab, {.context = 20, .step_tokens = 4});
  std::vector<Dim> scored;
  const NllSum out = negative_log_likelihood(session, ids, {.window = 5}, [&](Dim i, double nll) {
    scored.push_back(i);
    const Dim start = i / 5 * 5;
    const std::span<const Token> history = std::span<const Token>(ids).subspan(
        static_cast<std::size_t>(start), static_cast<std::size_t>(i - start));
    CHECK(nll == Approx(nll_after(history, ids[static_cast<std::size_t>(i)])).epsilon(1e-12));
  });
  CHECK(scored == std::vector<Dim>{1, 2, 3, 4, 6, 7, 8, 9});
  CHECK(out.tokens == 8);
}

TEST_CASE("negative log-likelihood of known rows") {
  // Four tokens with probabilities 1/2, 1/4, 1/8, 1/8 whatever came before.
  fake::Session session(4, {.context = 8}, [](std::span<const Token>, std::span<float> row) {
    for (std::size_t i = 0; i < 4; ++i)
      row[i] = std::log(i < 3 ? std::ldexp(1.F, -1 - static_cast<int>(i)) : .125F);
  });
  const NllSum out = negative_log_likelihood(session, Ids{0, 1, 2, 3}, {.window = 8, .bos = 0});
  CHECK(out.sum == Approx(std::log(2.0) * (1 + 2 + 3 + 3)).epsilon(1e-6));
  CHECK(out.perplexity() == Approx(std::pow(2.0, 9.0 / 4)).epsilon(1e-6));
  // An excluded id is infinitely unlikely, not an error.
  fake::Session never(2, {.context = 8}, [](std::span<const Token>, std::span<float> row) {
    row[0] = 0;
    row[1] = -INFINITY;
  });
  CHECK(std::isinf(negative_log_likelihood(never, Ids{0, 1}, {.bos = 0}).sum));
}

TEST_CASE("negative log-likelihood refuses what it cannot do") {
  fake::Session session(vocab, {.context = 20, .step_tokens = 8});
  const auto run = [&](const Ids& ids, const NllOptions& options) {
    return negative_log_likelihood(session, ids, options);
  };
  CHECK_THROWS_WITH(run({}, {.bos = 1}), contains("at least 1"));
  CHECK_THROWS_WITH(run({3}, {}), contains("at least 2") && contains("without a BOS"));
  CHECK_THROWS_WITH(run(some_ids(5), {.window = 0, .bos = 1}),
                    contains("window") && contains("it is 0"));
  CHECK_THROWS_WITH(run(some_ids(5), {.window = 1}), contains("at least 2"));
  CHECK_THROWS_AS(run({1, 2, 99}, {.bos = 1}), RequestError);
  CHECK_THROWS_AS(run({1, 2, 3}, {.bos = 99}), RequestError);
  CHECK_THROWS_AS(run(some_ids(23), {.window = 21, .bos = 1}), CapacityError);
  CHECK(session.forwards == 0);
  CHECK(run({3}, {.bos = 1}).tokens == 1);
}

}  // namespace
