// Same request, same bits: the logits of a sequence do not depend on how it was chunked, on the
// threads, on its batch mates, on the instruction set, or on whether the type was chosen at load.
#include <algorithm>
#include <cstdlib>

#include "backwards.hpp"
#include "golden/reference.hpp"
#include "model/synthetic.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using reference::Logits;
using reference::same_bits;

namespace {

// The formats that the laws go through; each costs compile time for every instruction set.
using Llama = zoo::Llama<Contiguous<AnyOf<F16, F32, Q8_0>>, synthetic::Formats>;

// Large enough that linear layers, norms, attention and the head really are split over threads, and
// odd enough that no size is a multiple of 16 tiles; longer than one 512-key segment.
constexpr synthetic::Sizes sizes{.width = 160,
                                 .layers = 2,
                                 .heads = 6,
                                 .kv_heads = 3,
                                 .head_dim = 40,
                                 .hidden = 416,
                                 .vocab = 1003,
                                 .tied = false};
constexpr int length = 67;

std::vector<Token> prompt(int n, int seed) {
  std::vector<Token> out;
  for (int i = 0; i < n; ++i) out.push_back((i * 7919 + seed * 104729 + 11) % 1003);
  return out;
}

std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (const Isa isa : known_isas) {
    if (supported(isa)) out.push_back(isa);
  }
  return out;
}

// Sets TENON_ISA for the sessions opened while it lives.
class Forced {
 public:
  explicit Forced(Isa isa) { ::setenv("TENON_ISA", std::string(name_of(isa)).c_str(), 1); }
  ~Forced() { ::unsetenv("TENON_ISA"); }
};

template <class M>
Logits run(const M& model, int chunk, Executor& executor, std::string_view cache,
           Activations activations = Activations::int8) {
  auto session = model.open({.seqs = 1, .context = 128, .step_tokens = length},
                            {.cache = cache, .activations = activations, .executor = &executor});
  return reference::logits(session, prompt(length, 1), chunk);
}

}  // namespace

TEMPLATE_TEST_CASE("chunks, threads, instruction sets and AnyModel change no bit", "[laws]", F32,
                   F16, Bf16, Q8_0, Q4_0, Q4_1) {
  const synthetic::Llama source(sizes, TestType::ggml_type);
  const auto model = Llama::bind(source);
  const AnyModel any = Registry<Entry<"llama", Llama>>::load(source);
  SerialExecutor serial;
  ThreadTeam two(2), three(3);
  Backwards backwards(3);
  for (const std::string_view cache : {"f32", "f16", "q8_0"}) {
    Logits across;
    for (const Isa isa : isas()) {
      const Forced forced(isa);
      INFO(TestType::name << ", cache " << cache << ", " << name_of(isa));
      const Logits whole = run(model, length, serial, cache);
      CHECK(std::all_of(whole.values.begin(), whole.values.end(),
                        [](float x) { return std::isfinite(x); }));
      for (const int chunk : {1, 2, 7, 16, 33}) {
        INFO("chunk " << chunk);
        CHECK(same_bits(run(model, chunk, serial, cache), whole));
      }
      CHECK(same_bits(run(model, length, two, cache), whole));
      CHECK(same_bits(run(model, 16, three, cache), whole));
      CHECK(same_bits(run(model, 33, backwards, cache), whole));
      CHECK(same_bits(run(any, 16, serial, cache), whole));
      if (across.values.empty()) across = whole;
      CHECK(same_bits(whole, across));
    }
  }
}

TEST_CASE("the laws can fail: another format, cache or activation arithmetic does change bits",
          "[laws]") {
  SerialExecutor serial;
  const auto f16 = Llama::bind(synthetic::Llama(sizes, F16::ggml_type));
  const auto q8 = Llama::bind(synthetic::Llama(sizes, Q8_0::ggml_type));
  const Logits base = run(q8, length, serial, "f32");
  CHECK_FALSE(same_bits(run(f16, length, serial, "f32"), base));
  CHECK_FALSE(same_bits(run(q8, length, serial, "f16"), base));
  CHECK_FALSE(same_bits(run(q8, length, serial, "f32", Activations::f32), base));
}

TEST_CASE("a sequence in a ragged batch of five gives the bits it gives alone", "[laws]") {
  for (const int format : {F32::ggml_type, Q8_0::ggml_type}) {
    const auto model = Llama::bind(synthetic::Llama(sizes, format));
    for (const Isa isa : isas()) {
      const Forced forced(isa);
      ThreadTeam two(2);
      auto session = model.open({.seqs = 5, .context = 96, .step_tokens = 64},
                                {.cache = "f16", .executor = &two});
      SerialExecutor serial;
      auto alone = model.open({.seqs = 1, .context = 96, .step_tokens = 96},
                              {.cache = "f16", .executor = &serial});
      // Lengths and steps such that every step mixes prefill chunks, single tokens and absentees.
      const int lengths[] = {37, 1, 64, 20, 9};
      std::vector<std::vector<Token>> texts;
      std::vector<Logits> expected, seen;
      std::vector<SeqId> open;
      std::vector<int> fed(5, 0);
      for (int i = 0; i < 5; ++i) {
        texts.push_back(prompt(lengths[i], i));
        expected.push_back(reference::logits(alone, texts.back(), 96));
        seen.push_back(expected.back());
        std::fill(seen.back().values.begin(), seen.back().values.end(), 0.0f);
        open.push_back(session.open());
      }
      for (int step = 0;; ++step) {
        std::vector<SeqId> seqs;
        std::vector<int> counts, want;
        std::vector<Token> tokens;
        std::vector<std::pair<int, int>> rows;
        for (int k = 0; k < 5; ++k) {
          const int i = (k + step) % 5;  // the order within the batch changes too
          const int left = lengths[i] - fed[static_cast<std::size_t>(i)];
          const int count = (std::min)(left, 1 + (step * 5 + i * 3) % 11);
          if (count == 0 || (step + i) % 4 == 3) continue;
          seqs.push_back(open[static_cast<std::size_t>(i)]);
          counts.push_back(count);
          for (int t = 0; t < count; ++t) {
            const int at = fed[static_cast<std::size_t>(i)]++;
            want.push_back(static_cast<int>(tokens.size()));
            tokens.push_back(texts[static_cast<std::size_t>(i)][static_cast<std::size_t>(at)]);
            rows.emplace_back(i, at);
          }
        }
        if (fed == std::vector<int>(lengths, lengths + 5) && tokens.empty()) break;
        if (tokens.empty()) continue;
        std::vector<float> out(want.size() * 1003);
        session.forward({seqs, counts, tokens, {}, {}, want},
                        matrix(out.data(), static_cast<Dim>(want.size()), 1003));
        for (std::size_t r = 0; r < rows.size(); ++r) {
          std::copy_n(
              out.data() + r * 1003, 1003,
              seen[static_cast<std::size_t>(rows[r].first)].values.data() + rows[r].second * 1003);
        }
      }
      for (std::size_t i = 0; i < 5; ++i) {
        INFO("sequence " << i << " under " << name_of(isa));
        CHECK(same_bits(seen[i], expected[i]));
      }
    }
  }
}

TEST_CASE("long contexts cross tile and segment borders alike in every chunking", "[laws]") {
  constexpr synthetic::Sizes small{.width = 32,
                                   .layers = 1,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .head_dim = 16,
                                   .hidden = 32,
                                   .vocab = 64};
  const auto model = Llama::bind(synthetic::Llama(small));
  const int n = 1100;  // three segments of 512 keys
  std::vector<Token> text;
  for (int i = 0; i < n; ++i) text.push_back((i * 31 + i / 7) % 64);
  SerialExecutor serial;
  const auto all = [&](int chunk) {
    auto session = model.open({.seqs = 1, .context = n, .step_tokens = n},
                              {.cache = "f32", .executor = &serial});
    return reference::logits(session, text, chunk);
  };
  const Logits whole = all(n);
  for (const int chunk : {1, 63, 64, 65, 511, 512, 513}) {
    INFO("chunk " << chunk);
    CHECK(same_bits(all(chunk), whole));
  }
}

TEST_CASE("fork, truncate and reuse give the bits of fresh sequences", "[laws]") {
  const auto model = Llama::bind(synthetic::Llama(sizes, F16::ggml_type));
  SerialExecutor serial;
  for (const std::string_view cache : {"f32", "f16", "q8_0"}) {
    auto session = model.open({.seqs = 3, .context = 80, .step_tokens = 80},
                              {.cache = cache, .executor = &serial});
    const auto feed = [&](SeqId seq, const std::vector<Token>& tokens) {
      const int n = static_cast<int>(tokens.size());
      const int last = n - 1;
      Logits out{1, 1003, std::vector<float>(1003)};
      session.forward({{&seq, 1}, {&n, 1}, tokens, {}, {}, {&last, 1}},
                      matrix(out.values.data(), 1, 1003));
      return out;
    };
    const auto fresh = [&](std::vector<Token> a, const std::vector<Token>& b) {
      a.insert(a.end(), b.begin(), b.end());
      const SeqId seq = session.open();
      const Logits out = feed(seq, a);
      session.close(seq);
      return out;
    };
    const auto start = prompt(21, 1), left = prompt(9, 2), right = prompt(13, 3);
    const SeqId a = session.open();
    feed(a, start);
    const SeqId b = session.fork(a);
    CHECK(session.length(b) == 21);
    const Logits on_a = feed(a, left);
    const Logits on_b = feed(b, right);
    CHECK(same_bits(on_a, fresh(start, left)));
    CHECK(same_bits(on_b, fresh(start, right)));
    session.truncate(a, 21);
    CHECK(same_bits(feed(a, right), on_b));
    session.truncate(a, 0);
    CHECK(same_bits(feed(a, start), fresh(start, {})));
    session.close(a);
    const SeqId again = session.open();
    CHECK(session.length(again) == 0);
    CHECK(same_bits(feed(again, left), fresh(left, {})));
  }
}
