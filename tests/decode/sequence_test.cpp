#include <tenon/decode/sequence.hpp>

#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "decode/contains.hpp"
#include "decode/fake_session.hpp"

namespace {

using namespace tenon;

constexpr int vocab = 32;

std::vector<Token> some_tokens(int n) {
  std::vector<Token> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back((i * 7 + 3) % vocab);
  return tokens;
}
std::vector<float> expected_row(const std::vector<Token>& history) {
  std::vector<float> row(vocab);
  fake::hashed_logits(history, row);
  return row;
}

TEST_CASE("OpenSequence closes what it opened, once, and on exceptions") {
  fake::Session session(vocab, {.seqs = 2});
  {
    OpenSequence a(session);
    OpenSequence b(session);
    CHECK(a.id() != b.id());
    CHECK(session.sequences_open() == 2);
    CHECK_THROWS_AS(OpenSequence<fake::Session>(session), CapacityError);
    const OpenSequence moved = std::move(a);
    CHECK(session.sequences_open() == 2);
  }
  CHECK(session.sequences_open() == 0);
  CHECK_THROWS_AS(
      [&] {
        const OpenSequence sequence(session);
        throw std::runtime_error("on the way");
      }(),
      std::runtime_error);
  CHECK(session.sequences_open() == 0);
  OpenSequence kept(session);
  const SeqId seq = kept.release();
  { const OpenSequence adopted(session, session.fork(seq)); }
  CHECK(session.sequences_open() == 1);
  {
    const OpenSequence twice(session, seq);
    session.close(seq);  // the guard has nothing left to do
  }
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("prefill in chunks of any size is step by step") {
  const std::vector<Token> tokens = some_tokens(23);
  const std::vector<float> expected = expected_row(tokens);
  for (const int step_tokens : {1, 2, 5, 22, 23, 24, 100}) {
    fake::Session session(vocab, {.context = 64, .step_tokens = step_tokens});
    const OpenSequence sequence(session);
    std::vector<float> row(vocab);
    prefill(session, sequence.id(), tokens, row);
    CHECK(row == expected);
    CHECK(session.tokens(sequence.id()) == tokens);
    CHECK(session.largest_step == (std::min)(step_tokens, 23));
    CHECK(session.forwards == (23 + step_tokens - 1) / step_tokens);
  }
  fake::Session session(vocab, {.context = 64});
  const OpenSequence sequence(session);
  std::vector<float> row(vocab);
  for (const Token token : tokens) step(session, sequence.id(), token, row);
  CHECK(row == expected);
}

TEST_CASE("prefill without a row appends and asks for no logits") {
  fake::Session session(vocab, {.context = 64, .step_tokens = 4});
  const OpenSequence sequence(session);
  prefill(session, sequence.id(), some_tokens(10), {});
  CHECK(session.tokens(sequence.id()) == some_tokens(10));
}

TEST_CASE("prefill refuses what cannot be appended before anything runs") {
  fake::Session session(vocab, {.context = 16, .step_tokens = 4});
  const OpenSequence sequence(session);
  std::vector<float> row(vocab);
  const auto run = [&](std::vector<Token> tokens, std::size_t width = vocab) {
    prefill(session, sequence.id(), tokens, std::span<float>(row).first(width));
  };
  CHECK_THROWS_WITH(run({}), contains("at least one") && contains("BOS"));
  CHECK_THROWS_AS(run({}), RequestError);
  CHECK_THROWS_AS(run({1, 2, 32}), RequestError);
  CHECK_THROWS_WITH(run({1, 2, 32}),
                    contains("token 2 of 3") && contains("0 to 31") && contains("it is 32"));
  CHECK_THROWS_WITH(run({-1}), contains("it is -1"));
  CHECK_THROWS_AS(run(some_tokens(17)), CapacityError);
  CHECK_THROWS_WITH(run(some_tokens(17)), contains("17 tokens") && contains("16"));
  CHECK_THROWS_WITH(run({1}, vocab - 1), contains("32") && contains("31"));
  CHECK(session.forwards == 0);
  run(some_tokens(10));
  CHECK_THROWS_WITH(run(some_tokens(7)), contains("17 tokens (10 cached and 7 more)"));
  std::vector<float> narrow(5);
  CHECK_THROWS_AS(step(session, sequence.id(), 1, narrow), RequestError);
  run(some_tokens(6));
  CHECK_THROWS_AS(step(session, sequence.id(), 1, row), CapacityError);
  CHECK(session.length(sequence.id()) == 16);
}

TEST_CASE("a cancelled prefill takes its chunks back") {
  fake::Session session(vocab, {.context = 64, .step_tokens = 4, .rollback = 5});
  const OpenSequence sequence(session);
  std::vector<float> row(vocab);
  prefill(session, sequence.id(), some_tokens(3), row);
  std::stop_source source;
  int at = 0;
  session.on_check = [&](int check) {
    if (check == at) source.request_stop();
  };
  // The third check of the third chunk: 8 tokens appended, 8 to take back.
  at = session.checks + 9;
  CHECK_THROWS_AS(prefill(session, sequence.id(), some_tokens(20), row, source.get_token()),
                  Cancelled);
  CHECK(session.tokens(sequence.id()) == some_tokens(3));

  // Where the cache cannot go back 8 rows, they stay and length() tells.
  session.bounded = true;
  source = {};
  at = session.checks + 9;
  CHECK_THROWS_AS(prefill(session, sequence.id(), some_tokens(20), row, source.get_token()),
                  Cancelled);
  CHECK(session.length(sequence.id()) == 11);
}

}  // namespace
