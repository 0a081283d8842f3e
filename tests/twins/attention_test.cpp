// The attention loop against softmax attention in double, and every instruction set against the
// scalar one bit for bit: layouts of heads, lengths around tile borders, masks with holes.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/attn/attend.hpp"
#include "tenon/attn/masks.hpp"
#include "tenon/attn/score_hooks.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/cache/ring.hpp"
#include "tenon/quant/fp8.hpp"

using namespace tenon;
using weights::normal;
using weights::same_bits;
using weights::supported_isas;

namespace {

// Every key but each third one, and never a later one: partial everywhere.
struct Holes {
  static constexpr bool bounded = false, looks_ahead = false;
  Rows reach(Rows queries, int) const { return {0, queries.high}; }
  Coverage classify(Rows, Rows) const { return Coverage::partial; }
  bool keep(int query, int key) const { return key <= query && (key % 3 != 0 || key == query); }
};
// Nothing is kept by odd queries.
struct Nothing {
  static constexpr bool bounded = false, looks_ahead = false;
  Rows reach(Rows queries, int) const { return {0, queries.high}; }
  Coverage classify(Rows, Rows) const { return Coverage::partial; }
  bool keep(int query, int key) const { return query % 2 == 0 && key <= query; }
};
// A hook of the user's own, without any of the optional members.
struct Recent {
  float logit(float score, int head, int query, int key) const {
    return score - static_cast<float>(head + 1) * static_cast<float>(query - key) / 64;
  }
};

template <class F>
using PagesOf4 = Paged<F, 4>;
template <class F>
using PagesOf16 = Paged<F, 16>;
template <class F>
using PagesOf64 = Paged<F, 64>;

struct Problem {
  AttentionShape shape;
  int tokens = 0;
  std::vector<float> keys, values, queries;

  Problem(Dim heads, Dim kv_heads, Dim dim, int n)
      : shape{heads, kv_heads, dim, dim, 1}, tokens(n) {
    keys = normal(n * kv_heads * dim, 1);
    values = normal(n * kv_heads * dim, 2);
    queries = normal(n * heads * dim, 3);
  }
};

// How the step is cut: all tokens at once on one thread, unless said otherwise.
struct Cut {
  int tokens = 0;  // at a time; 0: all
  int threads = 1;
};
template <class F, template <class> class Cache = Contiguous, class M, class S>
std::vector<float> attention(const Problem& p, Isa isa, const M& mask, const S& score,
                             const Cut& cut = {}) {
  const Dim row = p.shape.kv_heads * p.shape.key_dim;
  const int most = cut.tokens > 0 ? cut.tokens : p.tokens;
  RowSpec spec{{row, row}, 0};
  if constexpr (M::bounded) spec.reach = mask.rows_back();
  Cache<F> cache({&spec, 1}, {.seqs = 1, .context = p.tokens, .step_tokens = most}, {0, 0});
  std::vector<float> out(p.queries.size(), -1.0f);
  const Dim width = p.shape.heads * p.shape.key_dim;
  Backwards team(cut.threads);
  const auto run = [&](Workspace& work) {
    Cpu cpu(isa, Activations::f32, team, work);
    for (int base = 0; base < p.tokens; base += most) {
      const int count = (std::min)(most, p.tokens - base);
      if (!work.measuring()) CHECK(cache.reserve(SeqId{0}, base, count));
      for (int t = base; !work.measuring() && t < base + count; ++t) {
        encode_row<F>(p.keys.data() + t * row, row, cache.row(SeqId{0}, 0, 0, t));
        encode_row<F>(p.values.data() + t * row, row, cache.row(SeqId{0}, 0, 1, t));
      }
      const SeqStep seq{SeqId{0}, 0, count, base, nullptr};
      const Step step{{&seq, 1}, {}, count};
      attend(cpu, cache, 0, step, matrix(p.queries.data() + base * width, count, width),
             matrix(out.data() + base * width, count, width), p.shape, 0.25f, mask, score);
      if (work.measuring()) break;
    }
  };
  Workspace measure;
  run(measure);
  Workspace work(measure.peak());
  {
    const auto frame = work.frame();  // what a kernel does not write must not look like a zero
    const auto floats = static_cast<Dim>(measure.peak() / sizeof(float));
    std::fill_n(work.take<float>(floats), floats, std::numeric_limits<float>::quiet_NaN());
  }
  run(work);
  return out;
}

// In double, of the values as the cache rounds them. `worst` is the largest error over the bound.
template <class F, class M, class S>
double worst_error(const Problem& p, const std::vector<float>& got, const M& mask, const S& score) {
  const Dim dim = p.shape.key_dim, row = p.shape.kv_heads * dim;
  const auto rounded = [&](const std::vector<float>& rows) {
    std::vector<float> out(rows.size());
    std::vector<std::byte> bytes(row_bytes<F>(row));
    for (int t = 0; t < p.tokens; ++t) {
      encode_row<F>(rows.data() + t * row, row, bytes.data());
      decode_part<F>(bytes.data(), 0, row, out.data() + t * row);
    }
    return out;
  };
  const std::vector<float> keys = rounded(p.keys), values = rounded(p.values);
  float scale = 0.25f;
  if constexpr (ScalesQueries<S>) scale = score.scale(scale);
  double worst = 0;
  for (int t = 0; t < p.tokens; ++t) {
    for (Dim h = 0; h < p.shape.heads; ++h) {
      const float* q = p.queries.data() + (t * p.shape.heads + h) * dim;
      const Dim kv = h / p.shape.group() * dim;
      std::vector<double> weight(static_cast<std::size_t>(p.tokens));
      double top = -1e300, total = 0, magnitude = 0;
      for (int k = 0; k < p.tokens; ++k) {
        if (!mask.keep(t, k)) continue;
        double dot = 0;
        for (Dim d = 0; d < dim; ++d)
          dot += static_cast<double>(q[d]) *
                 static_cast<double>(keys[static_cast<std::size_t>(k * row + kv + d)]);
        double logit = dot * static_cast<double>(scale);
        if constexpr (ChangesLogits<S>) {
          const auto raw = static_cast<float>(logit);
          logit = static_cast<double>(score.logit(raw, static_cast<int>(h), t, k));
        }
        weight[static_cast<std::size_t>(k)] = logit;
        top = (std::max)(top, logit);
        magnitude = (std::max)(magnitude, std::fabs(logit));
      }
      for (int k = 0; k < p.tokens; ++k) {
        double& w = weight[static_cast<std::size_t>(k)];
        w = mask.keep(t, k) ? std::exp(w - top) : 0;
        total += w;
      }
      if constexpr (HasSink<S>) {
        total += std::exp(static_cast<double>(score.sink(static_cast<int>(h))) - top);
      }
      for (Dim d = 0; d < dim; ++d) {
        double exact = 0, spread = 0;
        for (int k = 0; k < p.tokens; ++k) {
          const double term =
              weight[static_cast<std::size_t>(k)] *
              static_cast<double>(values[static_cast<std::size_t>(k * row + kv + d)]);
          exact += term;
          spread += std::fabs(term);
        }
        if (total > 0) {
          exact /= total;
          spread /= total;
        }
        // A logit of size m is off by at most (dim + 8) eps m, its weight relatively by as much;
        // then come sums over the keys.
        const double allowed =
            2 * (static_cast<double>(dim + 8) * (magnitude + 1) + p.tokens) * 0x1p-24 * spread +
            1e-30;
        const float y = got[static_cast<std::size_t>((t * p.shape.heads + h) * dim + d)];
        worst = (std::max)(worst, std::fabs(static_cast<double>(y) - exact) / allowed);
      }
    }
  }
  return worst;
}

template <class F, class M, class S>
void check(const Problem& p, const M& mask, const S& score) {
  const std::vector<float> scalar = attention<F>(p, Isa::scalar, mask, score);
  INFO(F::name << ", heads " << p.shape.heads << "/" << p.shape.kv_heads << " x " << p.shape.key_dim
               << ", " << p.tokens << " tokens");
  CHECK(worst_error<F>(p, scalar, mask, score) <= 1);
  for (const Isa isa : supported_isas()) {
    INFO(name_of(isa));
    CHECK(same_bits(attention<F>(p, isa, mask, score), scalar));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("attention: formats, heads, lengths", "[twins]", F32, F16, Bf16, Q8_0) {
  for (const int tokens : {1, 15, 16, 17, 63, 64, 65, 130}) {
    check<TestType>(Problem(4, 2, 8, tokens), Causal{}, PlainScore{});
    check<TestType>(Problem(3, 1, 20, tokens), Causal{}, PlainScore{});
  }
  for (const int tokens : {1, 40, 70}) {  // narrower than a vector: several heads side by side
    check<TestType>(Problem(12, 4, 8, tokens), Causal{}, PlainScore{});
    check<TestType>(Problem(30, 10, 16, tokens), Causal{}, PlainScore{});
    check<TestType>(Problem(56, 8, 4, tokens), Causal{}, PlainScore{});
  }
  check<TestType>(Problem(9, 3, 64, 33), Causal{}, PlainScore{});
  check<TestType>(Problem(2, 2, 80, 20), Causal{}, PlainScore{});
  check<TestType>(Problem(5, 1, 128, 20), Causal{}, PlainScore{});
}

TEMPLATE_TEST_CASE("attention: formats that are decoded first", "[twins]", Q4_0, Fp8E4M3) {
  check<TestType>(Problem(4, 2, 32, 70), Causal{}, PlainScore{});
  check<TestType>(Problem(3, 1, 80, 20), Causal{}, PlainScore{});
}

// Several heads of one block, parts of tiles, pages smaller than the sixteen rows of a group: what
// is read where it lies and what is copied first are the same rows.
TEMPLATE_TEST_CASE("attention: layouts, steps and threads change no bit", "[twins]", F32, F16, Q8_0,
                   Q4_0) {
  for (const Problem& p : {Problem(8, 8, 32, 75), Problem(8, 2, 64, 141), Problem(6, 2, 40, 67),
                           Problem(16, 1, 32, 67), Problem(5, 5, 16, 600), Problem(12, 4, 8, 141),
                           Problem(16, 16, 6, 70)}) {
    INFO(TestType::name << ", heads " << p.shape.heads << "/" << p.shape.kv_heads << " x "
                        << p.shape.key_dim << ", " << p.tokens << " tokens");
    const Causal mask;
    const PlainScore score;
    const std::vector<float> whole = attention<TestType>(p, choose_isa(), mask, score);
    const auto same = [&](const std::vector<float>& other) { CHECK(same_bits(other, whole)); };
    const Cut one{1, 1};
    same(attention<TestType>(p, choose_isa(), mask, score, one));
    same(attention<TestType>(p, choose_isa(), mask, score, {7, 3}));
    same(attention<TestType, PagesOf4>(p, choose_isa(), mask, score, one));
    same(attention<TestType, PagesOf16>(p, choose_isa(), mask, score, one));
    same(attention<TestType, PagesOf16>(p, choose_isa(), mask, score, {0, 5}));
    same(attention<TestType, PagesOf64>(p, choose_isa(), mask, score, {33, 2}));
    const SlidingWindow window{50, 0};
    const std::vector<float> seen = attention<TestType>(p, choose_isa(), window, score);
    CHECK(same_bits(attention<TestType, Ring>(p, choose_isa(), window, score, one), seen));
    CHECK(same_bits(attention<TestType, Ring>(p, choose_isa(), window, score, {19, 2}), seen));
  }
}

TEST_CASE("attention: segments of 512 keys merge, and heads of odd widths", "[twins]") {
  check<F32>(Problem(2, 1, 16, 1100), Causal{}, PlainScore{});
  for (const Dim dim : {1, 2, 3, 7, 17}) check<F16>(Problem(2, 1, dim, 70), Causal{}, PlainScore{});
  for (const Dim dim : {1, 5, 15}) check<F32>(Problem(15, 5, dim, 70), Holes{}, Recent{});
  check<F32>(Problem(6, 6, 8, 600), Causal{}, PlainScore{});
}

TEST_CASE("attention: masks with holes, score hooks, queries that keep nothing", "[twins]") {
  const Problem p(4, 2, 24, 90);
  check<F32>(p, Holes{}, PlainScore{});
  check<F16>(p, Holes{}, Recent{});
  check<F32>(p, Nothing{}, PlainScore{});
  const std::vector<float> out = attention<F32>(p, choose_isa(), Nothing{}, PlainScore{});
  for (std::size_t i = 0; i < 4 * 24; ++i) CHECK(out[4 * 24 + i] == 0);  // query 1
  // The same token by token, of wide heads and of narrow ones that are taken side by side.
  for (const Problem& other : {p, Problem(12, 4, 8, 70)}) {
    const auto same = [&](const auto& mask, const auto& score) {
      check<F32>(other, mask, score);
      CHECK(same_bits(attention<F32>(other, choose_isa(), mask, score, {1, 1}),
                      attention<F32>(other, choose_isa(), mask, score)));
    };
    same(Holes{}, Recent{});
    same(Nothing{}, PlainScore{});
    const std::vector<float> logits(static_cast<std::size_t>(other.shape.heads), 0.5f);
    same(Nothing{}, LearnedSinks{logits});
  }
}

TEST_CASE("attention: the masks of the library", "[twins]") {
  for (const int tokens : {1, 20, 64, 150, 700}) {
    const Problem p(4, 2, 16, tokens);
    for (const int window : {1, 5, 64, 65, 200}) {
      check<F16>(p, SlidingWindow{window, 0}, PlainScore{});
      check<F32>(p, SlidingWindow{window, 4}, PlainScore{});
    }
    check<F32>(p, SlidingWindow{3, 70}, PlainScore{});
    check<F32>(p, Bidirectional{}, PlainScore{});
    for (const int block : {1, 7, 64, 100}) check<F32>(p, BlockCausal{block}, PlainScore{});
  }
}

TEST_CASE("attention: the score hooks of the library, alone and together", "[twins]") {
  const Problem p(6, 2, 24, 90);
  const LearnedSinks sinks{{-3, 0, 2, 50, -100, 0.5f}};
  check<F32>(p, Causal{}, SoftCap{5});
  check<F32>(p, Causal{}, SoftCap{0.3f});
  check<F32>(p, Causal{}, Alibi{8, 6});
  check<F32>(p, Causal{}, sinks);
  check<F32>(p, SlidingWindow{20, 2}, sinks);
  check<F32>(p, Causal{}, UnitScale{});
  using All = Scores<UnitScale, Alibi, SoftCap, LearnedSinks>;
  check<F16>(p, SlidingWindow{33, 0}, All{{UnitScale{}, Alibi{8, 6}, SoftCap{2}, sinks}});
  // Heads that are no power of two take the slopes in between (arXiv 2108.12409).
  const Alibi alibi{8, 6};
  CHECK(alibi.slope(0) == 0.25f);
  CHECK(alibi.slope(3) == 0.00390625f);
  CHECK(alibi.slope(4) == 0.5f);
  CHECK(alibi.slope(5) == 0.125f);
}

TEST_CASE("attention: a window reads nothing outside of itself", "[twins]") {
  Problem p(1, 1, 8, 400);
  const std::vector<float> out =
      attention<F32>(p, choose_isa(), SlidingWindow{10, 2}, PlainScore{});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 2 * 8; i < 390 * 8; ++i) p.values[i] = p.keys[i] = nan;
  const std::vector<float> poisoned =
      attention<F32>(p, choose_isa(), SlidingWindow{10, 2}, PlainScore{});
  CHECK(std::memcmp(out.data() + 399 * 8, poisoned.data() + 399 * 8, 8 * sizeof(float)) == 0);
}

TEST_CASE("attention: scores of -6e4 are real, and a key that is masked contributes nothing",
          "[twins]") {
  Problem p(1, 1, 8, 70);
  for (int d = 0; d < 8; ++d) p.queries[static_cast<std::size_t>(d)] = d == 0 ? 240000.0f : 0.0f;
  p.keys[0] = -1;  // the first query's only score: -6e4
  const std::vector<float> out = attention<F32>(p, choose_isa(), Causal{}, PlainScore{});
  for (std::size_t d = 0; d < 8; ++d) CHECK(out[d] == p.values[d]);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t d = 0; d < 8; ++d)
    p.values[69 * 8 + d] = p.keys[69 * 8 + d] = nan;  // only the last token sees it
  const std::vector<float> poisoned = attention<F32>(p, choose_isa(), Causal{}, PlainScore{});
  CHECK(std::memcmp(out.data(), poisoned.data(), 69 * 8 * sizeof(float)) == 0);
  CHECK(std::isnan(poisoned[69 * 8]));
}
