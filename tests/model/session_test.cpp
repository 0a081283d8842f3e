// What a session accepts, refuses, allocates and survives.
#include <cstdlib>
#include <thread>

#include "allocations.hpp"
#include "catch.hpp"
#include "golden/reference.hpp"
#include "model/synthetic.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

constexpr Limits limits{.seqs = 2, .context = 10, .step_tokens = 6};
constexpr int vocab = 300;

struct Fixture {
  zoo::Llama<> model = zoo::Llama<>::bind(synthetic::Llama({}));
  SerialExecutor serial;
  zoo::Llama<>::Session session = model.open(limits, {.executor = &serial});
  SeqId seq = session.open();
  std::vector<float> logits = std::vector<float>(vocab);

  void feed(std::vector<Token> tokens) {
    const int n = static_cast<int>(tokens.size()), last = n - 1;
    session.forward({{&seq, 1}, {&n, 1}, tokens, {}, {}, {&last, 1}},
                    matrix(logits.data(), 1, vocab));
  }
  template <class E>
  std::string refused(const Batch& batch, MatView<float> out) {
    const int before = session.length(seq);
    std::string text = "accepted";
    try {
      session.forward(batch, out);
    } catch (const E& error) {
      text = error.what();
    }
    CHECK(session.length(seq) == before);
    return text;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "bad batches are refused by name and change nothing", "[session]") {
  const auto row = matrix(logits.data(), 1, vocab);
  const Token ok[] = {1, 2, 3};
  const int three = 3, two = 2, zero = 0, minus = -1, want = 2, far = 3;
  const SeqId stranger{1}, absurd{-7};
  const SeqId twice[] = {seq, seq};
  const int ones[] = {1, 2};
  const Token high[] = {vocab}, low[] = {-1};
  const int one = 1;
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {}, ok, {}, {}, {}}, row),
             Contains("1 sequences and 0 counts"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&two, 1}, ok, {}, {}, {}}, row),
             Contains("add up to 2"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&zero, 1}, ok, {}, {}, {}}, row),
             Contains("count 0 is 0"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&minus, 1}, ok, {}, {}, {}}, row),
             Contains("count 0 is -1"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&zero, 1}, {}, {}, {}, {}}, row),
             Contains("it has 0"));
  CHECK_THAT(refused<RequestError>({{&stranger, 1}, {&three, 1}, ok, {}, {}, {}}, row),
             Contains("1 is not open"));
  CHECK_THAT(refused<RequestError>({{&absurd, 1}, {&three, 1}, ok, {}, {}, {}}, row),
             Contains("-7 is not open"));
  CHECK_THAT(refused<RequestError>({twice, ones, ok, {}, {}, {}}, row),
             Contains("stands in it twice"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&one, 1}, high, {}, {}, {}}, row),
             Contains("0 to 299") && Contains("300"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&one, 1}, low, {}, {}, {}}, row), Contains("-1"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&three, 1}, ok, {}, {}, {&far, 1}}, row),
             Contains("Batch::want") && Contains("3"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&three, 1}, ok, {&one, 1}, {}, {}}, row),
             Contains("1 positions and 3 tokens"));
  const int negative[] = {0, -5, 1};
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&three, 1}, ok, negative, {}, {}}, row),
             Contains("-5"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&three, 1}, ok, {}, negative, {}}, row),
             Contains("token trees"));
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&three, 1}, ok, {}, {}, {&want, 1}},
                                   matrix(logits.data(), 1, 299)),
             Contains("[1, 300]") && Contains("[1, 299]"));
  const int wants[] = {0, 0, 1, 2};
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&three, 1}, ok, {}, {}, wants}, row),
             Contains("4 wants and 3 tokens"));
  const Token many[7] = {};
  const int seven = 7;
  CHECK_THAT(refused<RequestError>({{&seq, 1}, {&seven, 1}, many, {}, {}, {}}, row),
             Contains("step_tokens = 6"));
}

TEST_CASE_METHOD(Fixture, "a full sequence is a CapacityError with both numbers; nothing is lost",
                 "[session]") {
  feed({1, 2, 3, 4, 5});
  feed({6, 7, 8});
  const std::vector<float> before = logits;
  const Token three[] = {1, 2, 3};
  const int n = 3;
  CHECK_THAT(refused<CapacityError>({{&seq, 1}, {&n, 1}, three, {}, {}, {}},
                                    matrix(logits.data(), 0, vocab)),
             Contains("context = 10") && Contains("holds 8 and 3 more"));
  session.truncate(seq, 5);
  feed({6, 7, 8});
  CHECK(logits == before);
  feed({9, 10});
  CHECK(session.length(seq) == 10);
}

TEST_CASE_METHOD(Fixture, "sequences run out, come back, and must be open", "[session]") {
  const SeqId other = session.fork(seq);
  CHECK_THROWS_AS(session.open(), CapacityError);
  CHECK_THROWS_AS(session.fork(seq), CapacityError);
  session.close(other);
  CHECK_THROWS_AS(session.length(other), RequestError);
  CHECK_THROWS_AS(session.close(other), RequestError);
  CHECK_THROWS_AS(session.truncate(seq, 1), RequestError);
  CHECK_THROWS_AS(session.truncate(seq, -1), RequestError);
  CHECK(session.open() == other);
}

TEST_CASE("limits and options out of range are refused by name", "[session]") {
  const auto model = zoo::Llama<>::bind(synthetic::Llama({}));
  CHECK_THROWS_WITH(model.open({.seqs = 0}), Contains("Limits::seqs must be 1"));
  CHECK_THROWS_WITH(model.open({.context = -3}), Contains("Limits::context") && Contains("-3"));
  CHECK_THROWS_WITH(model.open({.step_tokens = 0}), Contains("Limits::step_tokens"));
  CHECK_THROWS_WITH(model.open({}, {.cache = "q9"}), Contains("f16, f32, q8_0") && Contains("q9"));
  CHECK_THROWS_WITH(model.open({}, {.threads = -1}), Contains("threads") && Contains("-1"));
  ::setenv("TENON_ISA", "mmx", 1);
  CHECK_THROWS_WITH(model.open({}), Contains("TENON_ISA") && Contains("mmx"));
  ::unsetenv("TENON_ISA");
}

TEST_CASE("a step allocates nothing", "[session]") {
  const auto model = zoo::Llama<>::bind(
      synthetic::Llama({.width = 160, .hidden = 416, .vocab = 1003}, Q8_0::ggml_type));
  ThreadTeam team(2);
  for (const std::string_view cache : {"f32", "f16", "q8_0"}) {
    auto session = model.open({.seqs = 2, .context = 64, .step_tokens = 16},
                              {.cache = cache, .executor = &team});
    std::vector<float> logits(1003);
    std::vector<Token> tokens(16, 3);
    const SeqId seq = session.open();
    const auto step = [&](int n) {
      const int last = n - 1;
      session.forward({{&seq, 1},
                       {&n, 1},
                       std::span(tokens).first(static_cast<std::size_t>(n)),
                       {},
                       {},
                       {&last, 1}},
                      matrix(logits.data(), 1, 1003));
    };
    const std::size_t before = test::allocations_so_far();
    step(16);
    for (int i = 0; i < 20; ++i) step(1);
    CHECK(test::allocations_so_far() == before);
  }
}

TEST_CASE("the measured scratch suffices for every smaller step", "[session]") {
  const auto model = zoo::Llama<>::bind(
      synthetic::Llama({.width = 96, .heads = 6, .kv_heads = 1, .hidden = 64}, Q8_0::ggml_type));
  ThreadTeam three(3);
  for (const Activations activations : {Activations::int8, Activations::f32}) {
    auto session = model.open({.seqs = 1, .context = 40, .step_tokens = 20},
                              {.activations = activations, .executor = &three});
    for (int n = 1; n <= 20; ++n) {
      for (int wanted = 0; wanted <= n; ++wanted) {
        const SeqId seq = session.open();
        const std::vector<Token> tokens(static_cast<std::size_t>(n), 7);
        const std::vector<int> want(static_cast<std::size_t>(wanted), n - 1);
        std::vector<float> logits(static_cast<std::size_t>(wanted * vocab));
        session.forward({{&seq, 1}, {&n, 1}, tokens, {}, {}, want},
                        matrix(logits.data(), wanted, vocab));
        CHECK(session.length(seq) == n);
        session.close(seq);
      }
    }
  }
}

TEST_CASE("two sessions on two threads share one team", "[session]") {
  const auto model = zoo::Llama<>::bind(
      synthetic::Llama({.width = 160, .hidden = 416, .vocab = 1003}, F16::ggml_type));
  ThreadTeam team(2);
  const auto run = [&] {
    auto session = model.open({.seqs = 1, .context = 64, .step_tokens = 16}, {.executor = &team});
    return reference::logits(session, std::vector<Token>(48, 5), 16);
  };
  const auto expected = run();
  std::vector<reference::Logits> seen(2);
  std::thread other([&] { seen[0] = run(); });
  seen[1] = run();
  other.join();
  CHECK(reference::same_bits(seen[0], expected));
  CHECK(reference::same_bits(seen[1], expected));
}

TEST_CASE("sizes that no memory has are a CapacityError", "[session]") {
  const auto model = zoo::Llama<>::bind(synthetic::Llama({}));
  CHECK_THROWS_AS(model.open({.seqs = 1 << 20, .context = 1 << 28}), CapacityError);
  // 2 layers x 2 planes x 2^48 rows of 32 halves: a number, though no memory.
  CHECK(model.cache_bytes({.seqs = 1 << 20, .context = 1 << 28}) == std::size_t{1} << 56);
}

TEST_CASE("a stopped step leaves every sequence as it was", "[session]") {
  const auto model = zoo::Llama<>::bind(synthetic::Llama({.layers = 12}));
  SerialExecutor serial;
  auto session = model.open({.seqs = 1, .context = 600, .step_tokens = 300}, {.executor = &serial});
  const SeqId seq = session.open();
  std::vector<Token> text(300, 7);
  std::vector<float> logits(vocab), expected(vocab);
  const int n = 300, last = 299;
  const Batch batch{{&seq, 1}, {&n, 1}, text, {}, {}, {&last, 1}};
  session.forward(batch, matrix(expected.data(), 1, vocab));
  session.truncate(seq, 0);

  std::stop_source already;
  already.request_stop();
  CHECK_THROWS_AS(session.forward(batch, matrix(logits.data(), 1, vocab), already.get_token()),
                  Cancelled);
  CHECK(session.length(seq) == 0);
  int stopped = 0;
  for (int wait = 0; wait < 8; ++wait) {
    std::stop_source source;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait * 400));
      source.request_stop();
    });
    try {
      session.forward(batch, matrix(logits.data(), 1, vocab), source.get_token());
    } catch (const Cancelled&) {
      ++stopped;
      CHECK(session.length(seq) == 0);
    }
    stopper.join();
    session.truncate(seq, 0);
    session.forward(batch, matrix(logits.data(), 1, vocab));
    CHECK(logits == expected);
    session.truncate(seq, 0);
  }
  CHECK(stopped >= 1);
}

TEST_CASE("eight sessions share one model from eight threads", "[session]") {
  const auto model = zoo::Llama<>::bind(synthetic::Llama({}, F16::ggml_type));
  const auto run = [&](int which) {
    SerialExecutor serial;
    auto session = model.open({.seqs = 1, .context = 40, .step_tokens = 40}, {.executor = &serial});
    std::vector<Token> text;
    for (int i = 0; i < 33; ++i) text.push_back((which * 37 + i * 11) % vocab);
    return reference::logits(session, text, 5);
  };
  std::vector<reference::Logits> serial, together(8);
  for (int i = 0; i < 8; ++i) serial.push_back(run(i));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { together[i] = run(static_cast<int>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 8; ++i) CHECK(reference::same_bits(together[i], serial[i]));
}

TEST_CASE("NaN in the weights reaches the logits instead of being hidden", "[session]") {
  for (const std::string_view cache : {"f32", "f16", "q8_0"}) {
    for (const char* name : {"token_embd.weight", "blk.0.attn_k.weight", "blk.1.attn_v.weight",
                             "blk.1.ffn_down.weight", "output_norm.weight"}) {
      synthetic::Llama source({});
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(source.bytes(name) + 5 * 64 * (std::string_view(name) == "token_embd.weight") * 4,
                  &nan, 4);
      const auto model = zoo::Llama<>::bind(source);
      SerialExecutor serial;
      auto session = model.open({.seqs = 1, .context = 8, .step_tokens = 8},
                                {.cache = cache, .executor = &serial});
      const auto out = reference::logits(session, {5, 6, 5}, 3);
      INFO(name << ", cache " << cache);
      CHECK(
          std::any_of(out.values.begin(), out.values.end(), [](float x) { return std::isnan(x); }));
    }
  }
}
