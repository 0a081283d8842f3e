#pragma once
// The exact equalities that every composition keeps, written once for all of them: chunks, threads,
// batches, forks, going back, saving, layouts of the cache.
#include <string>
#include <vector>

#include "golden/reference.hpp"
#include "laws/random_source.hpp"
#include "tenon/model/any_model.hpp"

namespace laws {

using reference::Logits;
using tenon::SeqId;
using tenon::Token;
using Tokens = std::vector<Token>;

// What a composition can do, from its types.
struct Abilities {
  bool forks = true;
  bool in_chunks = true;  // its mask does not look ahead
  int block = 1;          // chunks must start at multiples of it
};
template <class M>
Abilities abilities_of(int block = 1) {
  using Mixer = typename M::kinds::template At<0>::Mixer;
  return {M::kinds::forks, !Mixer::MaskType::looks_ahead || block > 1, block};
}

inline Tokens some_tokens(std::size_t n, unsigned seed, int vocab) {
  Tokens tokens(n);
  for (Token& token : tokens) {
    seed = seed * 1664525u + 1013904223u;
    token = static_cast<Token>(seed >> 8) % vocab;
  }
  return tokens;
}

// Logits after each of `tokens`, appended to `seq` in chunks.
inline Logits append(tenon::AnySession& session, SeqId seq, const Tokens& tokens, int chunk) {
  Logits out{static_cast<tenon::Dim>(tokens.size()), session.vocab(), {}};
  out.values.resize(static_cast<std::size_t>(out.rows * out.columns));
  const int total = static_cast<int>(tokens.size());
  for (int at = 0; at < total; at += chunk) {
    const int count = (std::min)(chunk, total - at);
    std::vector<int> want(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) want[static_cast<std::size_t>(i)] = i;
    const std::span<const Token> part(tokens.data() + at, static_cast<std::size_t>(count));
    session.forward({{&seq, 1}, {&count, 1}, part, {}, {}, want},
                    tenon::matrix(out.values.data() + at * out.columns, count, out.columns), {});
  }
  return out;
}
inline Logits fresh(tenon::AnySession& session, const Tokens& tokens, int chunk) {
  const SeqId seq = session.open();
  const Logits out = append(session, seq, tokens, chunk);
  session.close(seq);
  return out;
}
inline Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline bool same_tail(const Logits& whole, const Logits& tail) {
  const std::size_t n = tail.values.size();
  return whole.values.size() >= n && std::memcmp(whole.values.data() + whole.values.size() - n,
                                                 tail.values.data(), n * sizeof(float)) == 0;
}

class Checker {
 public:
  static constexpr int wide = 128, narrow = 33, rollback = 8, length = 120;

  Checker(const tenon::AnyModel& model, Abilities abilities, std::string element)
      : model_(model), abilities_(abilities), element_(std::move(element)) {
    tokens_ = some_tokens(length, 7, model.vocab());
  }

  // Checks every law; returns the logits, which other caches must give too.
  Logits run() const {
    auto session = open(wide, 1);
    const Logits whole = fresh(session, tokens_, length);
    REQUIRE(std::all_of(whole.values.begin(), whole.values.end(),
                        [](float logit) { return std::isfinite(logit); }));
    threads(whole);
    if (!abilities_.in_chunks) return whole;
    chunks(whole);
    batches();
    going_back();
    saving();
    if (abilities_.forks) forks();
    return whole;
  }

 private:
  tenon::AnySession open(int step_tokens, int threads) const {
    return model_.open(
        {.seqs = 4, .context = length + 8, .step_tokens = step_tokens, .rollback = rollback},
        {.cache = element_, .threads = threads});
  }
  int chunk() const { return narrow / abilities_.block * abilities_.block; }

  void threads(const Logits& whole) const {
    for (const int n : {2, 3}) {
      auto session = open(wide, n);
      CHECK(reference::same_bits(fresh(session, tokens_, length), whole));
    }
  }
  void chunks(const Logits& whole) const {
    auto session = open(narrow, 1);
    for (const int n : {1, 2, 7, 8, 16, 33}) {
      if (n % abilities_.block != 0) continue;
      INFO("chunks of " << n);
      CHECK(reference::same_bits(fresh(session, tokens_, n), whole));
    }
  }
  // Three sequences of different lengths that grow side by side, one of them by jumps.
  void batches() const {
    const std::vector<Tokens> texts{tokens_, some_tokens(40, 11, model_.vocab()),
                                    some_tokens(72, 13, model_.vocab())};
    const std::vector<int> pace{abilities_.block, 2 * abilities_.block, abilities_.block};
    auto alone = open(narrow, 1);
    auto together = open(narrow, 2);
    std::vector<SeqId> seqs;
    for (std::size_t s = 0; s < texts.size(); ++s) seqs.push_back(together.open());
    std::vector<std::size_t> done(texts.size());
    std::vector<Logits> expected;
    for (const Tokens& text : texts) expected.push_back(fresh(alone, text, chunk()));
    bool same = true;
    for (;;) {
      std::vector<SeqId> who;
      std::vector<int> counts, want;
      Tokens batch;
      std::vector<const float*> rows;
      for (std::size_t s = 0; s < texts.size(); ++s) {
        const std::size_t left = texts[s].size() - done[s];
        const auto n = (std::min)(left, static_cast<std::size_t>(pace[s]));
        if (n == 0) continue;
        who.push_back(seqs[s]);
        counts.push_back(static_cast<int>(n));
        for (std::size_t i = 0; i < n; ++i) {
          want.push_back(static_cast<int>(batch.size()));
          batch.push_back(texts[s][done[s]]);
          rows.push_back(expected[s].row(static_cast<tenon::Dim>(done[s]++)));
        }
      }
      if (batch.empty()) break;
      std::vector<float> logits(batch.size() * static_cast<std::size_t>(model_.vocab()));
      const auto columns = static_cast<std::size_t>(model_.vocab());
      together.forward(
          {who, counts, batch, {}, {}, want},
          tenon::matrix(logits.data(), static_cast<tenon::Dim>(batch.size()), model_.vocab()), {});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        same = same && std::memcmp(logits.data() + i * columns, rows[i], columns * 4) == 0;
      }
    }
    CHECK(same);
  }
  void going_back() const {
    auto session = open(narrow, 1);
    const SeqId seq = session.open();
    const Tokens start(tokens_.begin(), tokens_.begin() + 80);
    const Tokens other = some_tokens(24, 17, model_.vocab());
    for (const int back : {abilities_.block, rollback / abilities_.block * abilities_.block}) {
      append(session, seq, Tokens(start.begin() + session.length(seq), start.end()), chunk());
      session.truncate(seq, 80 - back);
      const Tokens kept(start.begin(), start.begin() + 80 - back);
      const Logits tail = append(session, seq, other, chunk());
      CHECK(same_tail(fresh(session, joined(kept, other), chunk()), tail));
      session.truncate(seq, 80 - back + 24 - rollback / abilities_.block * abilities_.block);
      session.close(seq);
      REQUIRE(session.open() == seq);
    }
  }
  void saving() const {
    auto session = open(narrow, 1);
    const SeqId seq = session.open();
    append(session, seq, Tokens(tokens_.begin(), tokens_.begin() + 64), chunk());
    const std::vector<std::byte> saved = session.save(seq);
    const Tokens rest(tokens_.begin() + 64, tokens_.end());
    const Logits expected = append(session, seq, rest, chunk());
    auto other = open(narrow, 1);
    const SeqId again = other.restore(saved);
    CHECK(other.length(again) == 64);
    CHECK(reference::same_bits(append(other, again, rest, chunk()), expected));
  }
  void forks() const {
    auto session = open(narrow, 1);
    const Tokens start(tokens_.begin(), tokens_.begin() + 50);
    const int at = 50 / abilities_.block * abilities_.block;
    const Tokens kept(start.begin(), start.begin() + at);
    const Tokens one = some_tokens(32, 19, model_.vocab()),
                 two = some_tokens(32, 23, model_.vocab());
    const SeqId first = session.open();
    append(session, first, kept, chunk());
    const SeqId second = session.fork(first);
    const Logits a = append(session, first, one, chunk());
    const Logits b = append(session, second, two, chunk());
    session.close(first);
    const SeqId third = session.fork(second);
    const Logits c = append(session, third, one, chunk());
    session.close(second);
    session.close(third);
    CHECK(same_tail(fresh(session, joined(kept, one), chunk()), a));
    CHECK(same_tail(fresh(session, joined(kept, two), chunk()), b));
    CHECK(same_tail(fresh(session, joined(joined(kept, two), one), chunk()), c));
  }

  const tenon::AnyModel& model_;
  Abilities abilities_;
  std::string element_;
  Tokens tokens_;
};

inline const std::vector<std::string>& elements() {
  static const std::vector<std::string> all{"f32",  "f16",      "bf16",     "q8_0",
                                            "q4_0", "fp8_e4m3", "f16/q8_0", "q8_0/q4_0"};
  return all;
}

// All laws for model types M..., which differ in their caches only: they also agree with each
// other.
template <class... M>
void check(const std::vector<random_source::Key>& keys, int block = 1,
           const std::vector<std::string>& with = {}) {
  for (const std::string& element : elements()) {
    std::vector<Logits> logits;
    const auto one = [&]<class Model>(std::type_identity<Model>) {
      const auto source = random_source::Source::of<Model>(keys, with);
      const tenon::AnyModel model(Model::bind(source));
      INFO("cache " << logits.size() << " of the list, element " << element);
      logits.push_back(Checker(model, abilities_of<Model>(block), element).run());
      CHECK(reference::same_bits(logits.front(), logits.back()));
    };
    (one(std::type_identity<M>{}), ...);
  }
}

}  // namespace laws
