#include <tenon/decode/generate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "decode/contains.hpp"
#include "decode/fake_session.hpp"

namespace {

using namespace tenon;
using Ids = std::vector<Token>;

constexpr int vocab = 40;
const Ids prompt{1, 17, 4, 30, 9, 9, 2};

// What greedy decoding must give, written down without the code under test.
Ids greedy_by_hand(Ids history, int count, std::vector<double>* log_probabilities = nullptr) {
  Ids ids;
  std::vector<float> row(vocab);
  for (int i = 0; i < count; ++i) {
    fake::hashed_logits(history, row);
    const auto best = std::max_element(row.begin(), row.end());
    if (log_probabilities) {
      long double sum = 0;
      for (const float x : row) sum += std::exp(static_cast<long double>(x));
      log_probabilities->push_back(static_cast<double>(*best - std::log(sum)));
    }
    ids.push_back(static_cast<Token>(best - row.begin()));
    history.push_back(ids.back());
  }
  return ids;
}

TEST_CASE("greedy generation, in prompt chunks of any size") {
  std::vector<double> expected_logs;
  const Ids expected = greedy_by_hand(prompt, 20, &expected_logs);
  for (const int step_tokens : {1, 3, 7, 64}) {
    fake::Session session(vocab, {.context = 64, .step_tokens = step_tokens});
    Ids called;
    const Generation out = generate(session, prompt, {.max_tokens = 20, .log_probabilities = true},
                                    [&](Token token) { called.push_back(token); });
    CHECK(out.ids == expected);
    CHECK(called == expected);
    CHECK(out.finish == FinishReason::length);
    CHECK(out.pending == expected.back());
    REQUIRE(out.log_probabilities.size() == 20);
    for (std::size_t i = 0; i < 20; ++i) {
      CHECK(out.log_probabilities[i] == Approx(expected_logs[i]).epsilon(1e-12));
    }
    CHECK(session.sequences_open() == 0);
    CHECK(session.forwards == (7 + step_tokens - 1) / step_tokens + 19);
  }
}

TEST_CASE("every way to name a sampler is one loop") {
  fake::Session session(vocab, {.context = 64});
  const SamplingOptions sampling{.temperature = 0.8, .top_k = 12, .top_p = 0.9, .seed = 42};
  const GenerateOptions options{.max_tokens = 30, .sampling = sampling};
  const Ids expected = generate(session, prompt, options).ids;
  CHECK(expected != greedy_by_hand(prompt, 30));
  DefaultChain chain(vocab, sampling);
  CHECK(generate(session, prompt, chain, options).ids == expected);
  CHECK(generate(session, prompt, Chain(vocab, 42, TopK{12}, TopP{0.9}, Temperature{0.8}), options)
            .ids == expected);
  const Greedy greedy;
  CHECK(generate(session, prompt, greedy, options).ids == greedy_by_hand(prompt, 30));
  const OpenSequence sequence(session);
  CHECK(generate(session, sequence.id(), prompt, options).ids == expected);
}

TEST_CASE("same seed, same ids, whatever ran before or runs between") {
  fake::Session session(vocab, {.seqs = 3, .context = 64, .step_tokens = 16});
  const GenerateOptions options{.max_tokens = 25, .sampling = {.temperature = 1, .seed = 7}};
  const Ids expected = generate(session, prompt, options).ids;
  for (std::uint64_t round = 0; round < 20; ++round) {
    // Between any two tokens, another request may run to its end in the same session.
    const Ids ids = generate(session, prompt, options, [&](Token token) {
                      if (uniform(round, token) < 0.5) return;
                      const Ids other{static_cast<Token>(round), token};
                      generate(session, other,
                               {.max_tokens = static_cast<int>(round % 4),
                                .sampling = {.temperature = 1, .seed = round}});
                    }).ids;
    CHECK(ids == expected);
  }
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("a generation continued in parts is the generation in one") {
  const double temperature = GENERATE(0.0, 1.1);
  fake::Session session(vocab, {.seqs = 2, .context = 64, .step_tokens = 4});
  GenerateOptions options{.max_tokens = 24, .sampling = {.temperature = temperature, .seed = 3}};
  const Ids expected = generate(session, prompt, options).ids;
  const OpenSequence sequence(session);
  options.max_tokens = 6;
  Generation part = generate(session, sequence.id(), prompt, options);
  Ids ids = part.ids;
  for (int i = 1; i < 4; ++i) {
    // All but the last id is in the cache.
    CHECK(session.length(sequence.id()) == static_cast<int>(prompt.size() + ids.size()) - 1);
    const Token pending = part.pending.value();
    part = generate(session, sequence.id(), {&pending, 1}, options);
    ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  }
  CHECK(ids == expected);
}

TEST_CASE("every end token ends the sequence, and none of them is reported") {
  const Ids expected = greedy_by_hand(prompt, 30);
  fake::Session session(vocab, {.context = 64});
  for (const std::size_t at : {0u, 1u, 5u, 11u}) {
    const Token end = expected[at];
    const std::size_t first = static_cast<std::size_t>(
        std::find(expected.begin(), expected.end(), end) - expected.begin());
    const Ids ends{39, end, 38};
    Ids called;
    const auto note = [&](Token token) { called.push_back(token); };
    const Generation by_list = generate(session, prompt, {.max_tokens = 30, .end = ends}, note);
    CHECK(by_list.finish == FinishReason::stop);
    CHECK(by_list.ids ==
          Ids(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(first)));
    CHECK(called == by_list.ids);
    CHECK(by_list.pending == end);
    const Generation by_rule =
        generate(session, prompt, {.max_tokens = 30, .is_end = [&](Token t) { return t == end; }});
    CHECK(by_rule.finish == FinishReason::stop);
    CHECK(by_rule.ids == by_list.ids);
  }
}

TEST_CASE("a full context ends the sequence after one more token than it has rows") {
  fake::Session session(vocab, {.context = 12, .step_tokens = 5});
  const Generation out = generate(session, prompt, {});
  CHECK(out.finish == FinishReason::context);
  CHECK(out.ids == greedy_by_hand(prompt, 6));  // 7 + 5 rows, and one token that is not a row
  // Exactly filled by the prompt.
  Ids full = prompt;
  full.resize(12, 3);
  const Generation one = generate(session, full, {});
  CHECK(one.finish == FinishReason::context);
  CHECK(one.ids == greedy_by_hand(full, 1));
  // A limit that is reached with the last row is a limit.
  CHECK(generate(session, prompt, {.max_tokens = 6}).finish == FinishReason::length);
  CHECK(generate(session, prompt, {.max_tokens = 7}).finish == FinishReason::context);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("an over-long prompt is refused with both numbers and nothing leaks") {
  fake::Session session(vocab, {.context = 12});
  for (const std::size_t length : {13u, 24u, 120u}) {
    const Ids tokens(length, 5);
    CHECK_THROWS_AS(generate(session, tokens, {.max_tokens = 1}), CapacityError);
    CHECK_THROWS_WITH(generate(session, tokens, {.max_tokens = 1}),
                      contains(std::to_string(length) + " tokens") && contains("12"));
    CHECK(session.forwards == 0);
    CHECK(session.sequences_open() == 0);
  }
  CHECK(generate(session, prompt, {.max_tokens = 1}).ids.size() == 1);
}

TEST_CASE("requests outside what is accepted are refused before anything runs") {
  fake::Session session(vocab, {.context = 12});
  CHECK_THROWS_WITH(generate(session, Ids{}, {}), contains("at least one") && contains("BOS"));
  CHECK_THROWS_AS(generate(session, Ids{}, {}), RequestError);
  CHECK_THROWS_WITH(generate(session, Ids{1, 40}, {}),
                    contains("token 1 of 2") && contains("it is 40"));
  CHECK_THROWS_WITH(generate(session, Ids{-7}, {}), contains("it is -7"));
  CHECK_THROWS_WITH(generate(session, prompt, {.max_tokens = -1}), contains("max_tokens"));
  CHECK_THROWS_WITH(generate(session, prompt, {.sampling = {.top_k = -1}}), contains("top_k"));
  CHECK(session.forwards == 0);
  CHECK(session.sequences_open() == 0);
  const OpenSequence all(session);
  CHECK_THROWS_AS(generate(session, prompt, {}), CapacityError);
}

TEST_CASE("max_tokens 0 processes the prompt and draws nothing") {
  fake::Session session(vocab, {.context = 12, .step_tokens = 4});
  const OpenSequence sequence(session);
  const Generation out = generate(session, sequence.id(), prompt, {.max_tokens = 0});
  CHECK(out.ids.empty());
  CHECK(out.finish == FinishReason::length);
  CHECK_FALSE(out.pending.has_value());
  CHECK(out.timings.prompt_tokens == 7);
  CHECK(session.tokens(sequence.id()) == prompt);
}

TEST_CASE("the callback may end the sequence, and may throw") {
  fake::Session session(vocab, {.context = 64});
  int calls = 0;
  const Generation out = generate(session, prompt, {}, [&](Token) { return ++calls < 4; });
  CHECK(out.finish == FinishReason::callback);
  CHECK(out.ids == greedy_by_hand(prompt, 4));
  CHECK_THROWS_AS(generate(session, prompt, {}, [](Token) { throw std::logic_error("mine"); }),
                  std::logic_error);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("logits that cannot be drawn from end generation with an error") {
  const float bad =
      GENERATE(-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  fake::Session session(vocab, {.context = 64},
                        [&](std::span<const Token> history, std::span<float> row) {
                          fake::hashed_logits(history, row);
                          if (history.size() == prompt.size() + 3)
                            std::fill(row.begin(), row.end(), bad);
                        });
  int calls = 0;
  CHECK_THROWS_AS(generate(session, prompt, {}, [&](Token) { ++calls; }), RequestError);
  CHECK(calls == 3);
  CHECK(session.sequences_open() == 0);
}

struct Stubborn {
  Token sample(std::span<const float>, const DrawContext&) const { return 4000; }
};
TEST_CASE("a sampler that invents an id is refused") {
  fake::Session session(vocab, {.context = 64});
  CHECK_THROWS_WITH(generate(session, prompt, Stubborn{}, {}), contains("4000") && contains("39"));
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("a sampler sees the position and the tokens so far") {
  struct Recorder {
    std::vector<std::int64_t>* positions;
    Ids* past;
    Token sample(std::span<const float> logits, const DrawContext& at) const {
      positions->push_back(at.position);
      past->assign(at.past.begin(), at.past.end());
      return argmax(logits);
    }
  };
  fake::Session session(vocab, {.context = 64});
  std::vector<std::int64_t> positions;
  Ids past;
  generate(session, prompt, Recorder{&positions, &past}, {.max_tokens = 4});
  CHECK(positions == std::vector<std::int64_t>{7, 8, 9, 10});
  Ids expected = prompt;
  for (const Token token : greedy_by_hand(prompt, 3)) expected.push_back(token);
  CHECK(past == expected);
}

TEST_CASE("a cancel at any point leaves the session as usable as before") {
  const Ids expected = greedy_by_hand(prompt, 10);
  fake::Session session(vocab, {.seqs = 2, .context = 64, .step_tokens = 2});
  const OpenSequence bystander(session);
  prefill(session, bystander.id(), Ids{3, 1, 4}, {});
  const int whole = (4 + 9) * fake::Session::layers;  // looks at the stop token of a whole run
  for (int at = 0; at <= whole + 1; ++at) {
    std::stop_source source;
    const int from = session.checks;
    if (at == 0) source.request_stop();
    session.on_check = [&](int check) {
      if (check == from + at) source.request_stop();
    };
    Ids called;
    const Generation out = generate(session, prompt, {.max_tokens = 10, .stop = source.get_token()},
                                    [&](Token token) { called.push_back(token); });
    session.on_check = nullptr;
    const int prompt_checks = 4 * fake::Session::layers;
    const int drawn = at > whole            ? 10
                      : at <= prompt_checks ? 0
                                            : 1 + (at - prompt_checks - 1) / fake::Session::layers;
    CHECK(out.finish == (at > whole ? FinishReason::length : FinishReason::cancelled));
    CHECK(out.ids == Ids(expected.begin(), expected.begin() + drawn));
    CHECK(called == out.ids);
    CHECK(out.pending.has_value() == (drawn > 0));
    CHECK(session.sequences_open() == 1);
    CHECK(session.tokens(bystander.id()) == Ids{3, 1, 4});
    CHECK(generate(session, prompt, {.max_tokens = 10}).ids == expected);
  }
}

TEST_CASE("a cancelled sequence continues where it was cut") {
  const Ids expected = greedy_by_hand(prompt, 20);
  fake::Session session(vocab, {.context = 64, .step_tokens = 8});
  for (int at = 1; at < 60; at += 7) {
    const OpenSequence sequence(session);
    std::stop_source source;
    const int from = session.checks;
    session.on_check = [&](int check) {
      if (check == from + at) source.request_stop();
    };
    const Generation cut =
        generate(session, sequence.id(), prompt, {.max_tokens = 20, .stop = source.get_token()});
    session.on_check = nullptr;
    Ids ids = cut.ids;
    const Ids next = cut.pending ? Ids{*cut.pending} : prompt;
    const Generation rest =
        generate(session, sequence.id(), next, {.max_tokens = 20 - static_cast<int>(ids.size())});
    ids.insert(ids.end(), rest.ids.begin(), rest.ids.end());
    CHECK(ids == expected);
  }
}

TEST_CASE("another thread may cancel at any time") {
  fake::Session session(vocab, {.context = 1 << 16});
  std::stop_source source;
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    source.request_stop();
  });
  const Generation out = generate(session, prompt, {.stop = source.get_token()}, [](Token) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
  CHECK(out.finish == FinishReason::cancelled);
  CHECK(session.sequences_open() == 0);
}

TEST_CASE("timings add up") {
  fake::Session session(vocab, {.context = 64});
  session.on_check = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const Generation out = generate(session, prompt, {.max_tokens = 5});
  CHECK(out.timings.prompt_tokens == 7);
  CHECK(out.timings.prompt_seconds >= 0.003);  // one forward of three layers
  CHECK(out.timings.first_token_seconds >= out.timings.prompt_seconds);
  CHECK(out.timings.decode_seconds >= 0.012);  // four more
}

TEST_CASE("finish reasons have names") {
  CHECK(name_of(FinishReason::stop) == "stop");
  CHECK(name_of(FinishReason::cancelled) == "cancelled");
  CHECK(name_of(static_cast<FinishReason>(77)) == "unknown");
}

}  // namespace
