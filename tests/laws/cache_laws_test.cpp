// Where rows lie changes no bit: pages, rings inside their window, forks, and sequences that were
// saved and restored give the logits of a contiguous cache that was never disturbed.
#include <algorithm>

#include "golden/reference.hpp"
#include "model/synthetic.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/cache/ring.hpp"
#include "tenon/model/any_model.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using Catch::Matchers::Contains;
using reference::Logits;
using reference::same_bits;

namespace {

constexpr synthetic::Sizes sizes{
    .width = 32, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 24, .hidden = 48, .vocab = 64};
constexpr int window = 21;

// A token sees itself and the window - 1 before it.
struct Window {
  static constexpr bool bounded = true, looks_ahead = false;
  int rows_back() const { return window; }
  Rows reach(Rows queries, int) const {
    return {(std::max)(0, queries.low - window + 1), queries.high};
  }
  Coverage classify(Rows, Rows) const { return Coverage::partial; }
  bool keep(int query, int key) const { return key <= query && key > query - window; }
};

using Elements = AnyOf<F32, F16, Q8_0, Bf16, Q4_0, Fp8E4M3>;
using Plain = zoo::Llama<Contiguous<Elements>, F32>;
using Pages = zoo::Llama<Paged<Elements>, F32>;
template <class Cache>
using Local = Decoder<Kinds<Block<Gqa<GqaSpec{}, Window, Rope, Cache>, GatedMlp<Silu>, RmsNorm>>,
                      Uniform{}, F32>;
using Rings = Local<Ring<Elements>>;
using Whole = Local<Contiguous<Elements>>;

const synthetic::Llama& source() {
  static const synthetic::Llama llama(sizes);
  return llama;
}
SerialExecutor& serial() {
  static SerialExecutor executor;
  return executor;
}
template <class M>
const M& model() {
  static const M bound = M::bind(source(), serial());
  return bound;
}
template <class M>
auto open(const Limits& limits, std::string_view cache = {}) {
  return model<M>().open(limits, {.cache = cache, .executor = &serial()});
}

std::vector<Token> text(int n, int seed) {
  std::vector<Token> out;
  for (int i = 0; i < n; ++i) out.push_back((i * 37 + i / 5 + seed * 11) % 64);
  return out;
}
// Logits after each token.
template <class S>
Logits feed(S& session, SeqId seq, const std::vector<Token>& tokens, int chunk = 8) {
  Logits out{static_cast<Dim>(tokens.size()), 64, std::vector<float>(tokens.size() * 64)};
  const int total = static_cast<int>(tokens.size());
  for (int at = 0; at < total; at += chunk) {
    const int n = (std::min)(chunk, total - at);
    std::vector<int> want;
    for (int i = 0; i < n; ++i) want.push_back(i);
    session.forward(
        {{&seq, 1},
         {&n, 1},
         std::span(tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)),
         {},
         {},
         want},
        matrix(out.values.data() + at * 64, n, 64), {});
  }
  return out;
}
template <class M>
Logits fresh(const std::vector<Token>& start, const std::vector<Token>& rest,
             std::string_view cache = {}) {
  auto session = open<M>({.seqs = 1, .context = 200, .step_tokens = 8}, cache);
  const SeqId seq = session.open();
  feed(session, seq, start);
  return feed(session, seq, rest);
}

template <class E, class Call>
std::string refused(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "accepted, or refused with another type";
}

}  // namespace

TEST_CASE("pages and contiguous rows give the same bits", "[laws]") {
  const auto tokens = text(150, 1);
  for (const std::string_view cache :
       {"f32", "f16", "bf16", "q8_0", "q4_0", "fp8_e4m3", "f16/q8_0", "f32/q4_0"}) {
    INFO(cache);
    const Logits expected = fresh<Plain>({}, tokens, cache);
    for (const int chunk : {1, 5, 40}) {
      auto session = open<Pages>({.seqs = 2, .context = 160, .step_tokens = 40}, cache);
      const SeqId other = session.open();
      const SeqId seq = session.open();
      feed(session, other, text(21, 2), chunk);  // so that pages interleave
      CHECK(same_bits(feed(session, seq, tokens, chunk), expected));
    }
  }
}

TEST_CASE("a ring gives the bits of all rows under its window", "[laws]") {
  const auto tokens = text(150, 1);
  for (const std::string_view cache : {"f32", "f16", "q8_0", "bf16/fp8_e4m3"}) {
    INFO(cache);
    const Logits expected = fresh<Whole>({}, tokens, cache);
    for (const int chunk : {1, 5, 33}) {
      auto session = open<Rings>({.seqs = 2, .context = 160, .step_tokens = chunk}, cache);
      const SeqId other = session.open();
      const SeqId seq = session.open();
      feed(session, other, text(70, 2), chunk);
      CHECK(same_bits(feed(session, seq, tokens, chunk), expected));
    }
  }
  const Limits small{.seqs = 1, .context = 4096, .step_tokens = 1};
  CHECK(model<Rings>().cache_bytes(small, "f32") == std::size_t{2 * 2 * 2 * 24 * 4} * window);
}

TEST_CASE("a ring goes back by Limits::rollback and no further", "[laws]") {
  const auto start = text(60, 1), rest = text(9, 2);
  auto session = open<Rings>({.seqs = 1, .context = 160, .step_tokens = 8, .rollback = 5}, "f32");
  const SeqId seq = session.open();
  auto longer = start;
  longer.insert(longer.end(), {1, 2, 3, 4, 5});
  feed(session, seq, longer);
  std::stop_source stopped;
  stopped.request_stop();
  const Token eight[8] = {};
  const int n = 8;
  CHECK_THROWS_AS(session.forward({{&seq, 1}, {&n, 1}, eight, {}, {}, {}},
                                  matrix<float>(nullptr, 0, 64), stopped.get_token()),
                  Cancelled);
  CHECK_THAT(refused<RequestError>([&] { session.truncate(seq, 40); }),
             Contains("of 65 rows it cannot go back to 40"));
  session.truncate(seq, 60);
  CHECK(same_bits(feed(session, seq, rest), fresh<Whole>(start, rest, "f32")));
}

TEST_CASE("forks of pages that diverge give the bits of fresh sequences", "[laws]") {
  for (const int n : {15, 16, 21}) {
    const auto start = text(n, 1);
    auto session = open<Pages>({.seqs = 4, .context = 64, .step_tokens = 32}, "f16");
    const SeqId a = session.open();
    feed(session, a, start);
    const SeqId b = session.fork(a), c = session.fork(b);
    const auto left = text(20, 2), middle = text(3, 3), right = text(17, 4);
    CHECK(same_bits(feed(session, c, right), fresh<Plain>(start, right, "f16")));
    CHECK(same_bits(feed(session, a, left), fresh<Plain>(start, left, "f16")));
    session.close(a);
    CHECK(same_bits(feed(session, b, middle), fresh<Plain>(start, middle, "f16")));
    session.truncate(c, n - 4);
    const auto shorter = text(n - 4, 1);
    CHECK(same_bits(feed(session, c, left), fresh<Plain>(shorter, left, "f16")));
    session.truncate(b, n);
    CHECK(same_bits(feed(session, b, right), fresh<Plain>(start, right, "f16")));
  }
}

TEST_CASE("a used up pool is a CapacityError and changes nothing", "[laws]") {
  auto session = open<Pages>({.seqs = 2, .context = 96, .step_tokens = 32, .pool_rows = 64}, "f32");
  const auto start = text(30, 1), rest = text(2, 2);
  const SeqId a = session.open();
  feed(session, a, start);
  const SeqId b = session.fork(a);
  feed(session, b, text(18, 3));  // 48 rows: a page of its own and one more; one shared, none free
  const std::vector<Token> tokens(6, 1);
  const SeqId both[] = {b, a};
  const int counts[] = {3, 3};  // b would take a page, and so would a for row 32
  const auto batch = [&] {
    session.forward({both, counts, tokens, {}, {}, {}}, matrix<float>(nullptr, 0, 64), {});
  };
  CHECK_THAT(refused<CapacityError>(batch), Contains("3 more rows") && Contains("pool_rows"));
  CHECK(session.length(a) == 30);
  CHECK(session.length(b) == 48);
  CHECK(same_bits(feed(session, a, rest), fresh<Plain>(start, rest, "f32")));
  session.truncate(b, 30);
  CHECK(same_bits(feed(session, b, rest), fresh<Plain>(start, rest, "f32")));
}

TEST_CASE("restored sequences go on as if never saved, in any layout", "[laws]") {
  const auto start = text(45, 1), rest = text(30, 2);
  const Limits limits{.seqs = 3, .context = 96, .step_tokens = 16, .rollback = 4};
  const auto check = [&](auto from, auto to, std::string_view cache) {
    using From = typename decltype(from)::type;
    using To = typename decltype(to)::type;
    auto a = open<From>(limits, cache);
    const SeqId seq = a.open();
    feed(a, seq, start);
    const auto saved = a.save(seq);
    CHECK(a.save(seq) == saved);
    Limits other = limits;
    other.step_tokens = 9;
    auto b = open<To>(other, cache);
    const SeqId before = b.open();
    feed(b, before, text(20, 5));
    const SeqId restored = b.restore(saved);
    CHECK(b.length(restored) == 45);
    const Logits expected = feed(a, seq, rest);
    CHECK(same_bits(feed(b, restored, rest), expected));
    // Going back works as promised, too.
    const SeqId again = b.restore(saved);
    b.truncate(again, 42);
    a.truncate(seq, a.length(seq));
    auto shorter = text(42, 1);
    CHECK(same_bits(feed(b, again, rest), fresh<From>(shorter, rest, cache)));
    CHECK(same_bits(feed(b, before, rest), fresh<From>(text(20, 5), rest, cache)));
  };
  using std::type_identity;
  for (const std::string_view cache : {"f32", "q8_0", "f16/q4_0"}) {
    INFO(cache);
    check(type_identity<Plain>{}, type_identity<Plain>{}, cache);
    check(type_identity<Plain>{}, type_identity<Pages>{}, cache);
    check(type_identity<Pages>{}, type_identity<Plain>{}, cache);
    check(type_identity<Rings>{}, type_identity<Rings>{}, cache);
    check(type_identity<Whole>{}, type_identity<Rings>{}, cache);
  }
  // A ring that has forgotten nothing fills any cache; one that has cannot.
  auto ring = open<Rings>(limits, "f32");
  auto whole = open<Whole>(limits, "f32");
  const SeqId seq = ring.open();
  feed(ring, seq, text(16, 1));
  feed(ring, seq, rest);
  CHECK_THAT(refused<RequestError>([&] { whole.restore(ring.save(seq)); }),
             Contains("layer 0") && Contains("of 46 rows") && Contains("from 22 on"));
  ring.truncate(seq, 0);
  feed(ring, seq, text(16, 1));
  const SeqId filled = whole.restore(ring.save(seq));
  CHECK(same_bits(feed(whole, filled, rest), feed(ring, seq, rest)));
}

TEST_CASE("a saved sequence is refused by another model, format, or where there is no room",
          "[laws]") {
  auto session = open<Plain>({.seqs = 2, .context = 40, .step_tokens = 40}, "f16/q8_0");
  const SeqId seq = session.open();
  feed(session, seq, text(33, 1));
  const auto saved = session.save(seq);
  const auto refusal = [&](auto tag, auto& other) {
    using E = typename decltype(tag)::type;
    const std::string text = refused<E>([&] { other.restore(saved); });
    CHECK_THROWS_AS(other.length(SeqId{1}), RequestError);
    return text;
  };
  auto f16 = open<Pages>({.seqs = 2, .context = 40}, "f16");
  CHECK_THAT(
      refusal(std::type_identity<RequestError>{}, f16),
      Contains("values of cached layer 0 must be saved as f16") && Contains("they are q8_0"));
  auto shorter = open<Plain>({.seqs = 2, .context = 32}, "f16/q8_0");
  CHECK_THAT(refusal(std::type_identity<CapacityError>{}, shorter),
             Contains("context = 32") && Contains("has 33"));
  auto pool = open<Pages>({.seqs = 2, .context = 40, .pool_rows = 32}, "f16/q8_0");
  CHECK_THAT(refusal(std::type_identity<CapacityError>{}, pool), Contains("33 rows"));
  const SeqId fits = pool.open();
  feed(pool, fits, text(32, 1));  // the whole pool is still there
  auto full = open<Plain>({.seqs = 1, .context = 40}, "f16/q8_0");
  full.open();
  CHECK_THAT(refused<CapacityError>([&] { full.restore(saved); }), Contains("all are open"));

  const auto other_model = [&](auto&& change) {
    synthetic::Llama changed(sizes);
    change(changed);
    const auto bound = Plain::bind(changed, serial());
    auto other = bound.open({.seqs = 2, .context = 40}, {.cache = "f16/q8_0"});
    return refusal(std::type_identity<RequestError>{}, other);
  };
  for (const std::string_view name :
       {"blk.1.attn_norm.weight", "output_norm.weight", "blk.0.attn_k.weight"}) {
    CHECK_THAT(other_model([&](synthetic::Llama& l) { l.bytes(name)[1] ^= std::byte{1}; }),
               Contains("fingerprint"));
  }
  CHECK_THAT(other_model([&](synthetic::Llama& l) {
               l.edit_metadata().set("llama.rope.freq_base", 10001.0f);
             }),
             Contains("fingerprint"));
  CHECK_THAT(other_model([&](synthetic::Llama& l) { l.put("llama.rope.dimension_count", 12); }),
             Contains("fingerprint"));
  CHECK(other_model([](synthetic::Llama&) {}) == "accepted, or refused with another type");
}

TEST_CASE("a saved sequence is refused whatever byte is flipped and wherever it is cut", "[laws]") {
  auto session = open<Pages>({.seqs = 3, .context = 40, .step_tokens = 40}, "q4_0");
  const SeqId seq = session.open();
  const auto rest = text(5, 2);
  feed(session, seq, text(17, 1));
  const auto saved = session.save(seq);
  auto bytes = saved;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 0x80, 0xff}) {
      bytes[i] ^= static_cast<std::byte>(flip);
      CHECK_THROWS_AS(session.restore(bytes), LoadError);
      bytes[i] ^= static_cast<std::byte>(flip);
    }
  }
  for (std::size_t n = 0; n < saved.size(); ++n) {
    CHECK_THROWS_AS(session.restore(std::span(saved).first(n)), LoadError);
  }
  bytes.push_back(std::byte{0});
  CHECK_THROWS_AS(session.restore(bytes), LoadError);

  // Forged: the checksum is right, and what it covers is not.
  for (std::size_t i = 8; i < (std::min)(saved.size() - 8, std::size_t{200}); ++i) {
    for (const int flip : {1, 0x40, 0x80, 0xff}) {
      bytes = saved;
      bytes[i] ^= static_cast<std::byte>(flip);
      const std::uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
      std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
      try {
        session.close(session.restore(bytes));
      } catch (const Error&) {}
    }
  }
  const SeqId restored = session.restore(saved);
  const Logits expected = feed(session, seq, rest);
  CHECK(same_bits(feed(session, restored, rest), expected));
}

TEST_CASE("AnyModel saves and restores", "[laws]") {
  const AnyModel any(model<Plain>());
  AnySession session = any.open({.seqs = 2, .context = 40, .step_tokens = 40});
  const SeqId seq = session.open();
  feed(session, seq, text(20, 1));
  const SeqId copy = session.restore(session.save(seq));
  CHECK(same_bits(feed(session, copy, text(9, 2)), feed(session, seq, text(9, 2))));
}
