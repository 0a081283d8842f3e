// Token trees and accepted paths; contexts that lose rows in the middle; fused projections. Trees
// and shifts add in another order than a plain run, so they agree with it up to rounding; chains
// agree bit for bit.
#include "laws/compositions.hpp"
#include "laws/laws.hpp"
#include "tenon/zoo/phi3.hpp"

using namespace laws;

namespace {

// Float sums of a few hundred terms of size one in two orders, through two layers.
constexpr double reordered = 5e-5;

Logits step(AnySession& session, SeqId seq, const Tokens& tokens, const std::vector<int>& parents) {
  Logits out{static_cast<Dim>(tokens.size()), session.vocab(), {}};
  out.values.resize(static_cast<std::size_t>(out.rows * out.columns));
  std::vector<int> want(tokens.size());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = static_cast<int>(i);
  const int count = static_cast<int>(tokens.size());
  session.forward({{&seq, 1}, {&count, 1}, tokens, {}, parents, want},
                  matrix(out.values.data(), out.rows, out.columns));
  return out;
}
double row_difference(const Logits& a, Dim row_a, const Logits& b, Dim row_b) {
  double worst = 0;
  for (Dim i = 0; i < a.columns; ++i) {
    const auto x = static_cast<double>(a.row(row_a)[i]), y = static_cast<double>(b.row(row_b)[i]);
    worst = (std::max)(worst, std::fabs(x - y));
  }
  return worst;
}

template <class M>
void check_trees(const std::vector<random_source::Key>& keys) {
  const AnyModel model(M::bind(random_source::Source::of<M>(keys)));
  auto session =
      model.open({.seqs = 3, .context = 96, .step_tokens = 40}, {.cache = "f32", .threads = 1});
  auto apart = model.open({.context = 96, .step_tokens = 40}, {.cache = "f32", .threads = 1});
  const Tokens prefix = some_tokens(21, 3, model.vocab()), nodes = some_tokens(7, 5, model.vocab());
  const std::vector<int> parents{-1, 0, 0, 1, 2, -1, 5};

  const SeqId seq = session.open();
  append(session, seq, prefix, 21);
  const Logits tree = step(session, seq, nodes, parents);
  for (int node = 0; node < 7; ++node) {
    Tokens path;
    for (int at = node; at >= 0; at = parents[static_cast<std::size_t>(at)]) {
      path.insert(path.begin(), nodes[static_cast<std::size_t>(at)]);
    }
    const Logits alone = fresh(apart, joined(prefix, path), 40);
    INFO("node " << node);
    CHECK(row_difference(tree, node, alone, alone.rows - 1) <= reordered);
  }
  // What is no path is refused, and changes nothing.
  for (const std::vector<int>& wrong :
       {std::vector<int>{1}, std::vector<int>{0, 3}, std::vector<int>{0, 1, 4},
        std::vector<int>{0, 7}, std::vector<int>{-1}, std::vector<int>{0, 5}}) {
    CHECK_THROWS_AS(session.accept(seq, wrong), RequestError);
  }
  session.accept(seq, std::vector<int>{0, 2, 4});
  CHECK(session.length(seq) == 24);
  const Tokens more = some_tokens(9, 9, model.vocab());
  const Logits after = append(session, seq, more, 40);
  const Tokens path{nodes[0], nodes[2], nodes[4]};
  const Logits plain = fresh(session, joined(joined(prefix, path), more), 40);
  for (Dim i = 0; i < after.rows; ++i) {
    CHECK(row_difference(after, i, plain, plain.rows - after.rows + i) <= reordered);
  }
  CHECK_THROWS_AS(session.accept(seq, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
                  RequestError);
  session.close(seq);

  // A chain, with parents or without, is the plain run; its accepted part too.
  const SeqId chain = session.open();
  append(session, chain, prefix, 21);
  const Logits linked = step(session, chain, nodes, {-1, 0, 1, 2, 3, 4, 5});
  CHECK(same_tail(fresh(apart, joined(prefix, nodes), 40), linked));
  session.accept(chain, std::vector<int>{0, 1, 2});
  const Tokens kept(nodes.begin(), nodes.begin() + 3);
  CHECK(same_tail(fresh(session, joined(joined(prefix, kept), more), 40),
                  append(session, chain, more, 40)));
}

// With one layer, keys and values depend on their own token alone, so that a sequence that lost
// rows in the middle is the one that never had them.
template <class M>
void check_shift(std::vector<random_source::Key> changed) {
  changed.push_back({"block_count", 1});
  const auto keys = sizes(std::move(changed));
  const AnyModel model(M::bind(random_source::Source::of<M>(keys)));
  auto session =
      model.open({.seqs = 3, .context = 128, .step_tokens = 128}, {.cache = "f32", .threads = 1});
  const Tokens tokens = some_tokens(90, 3, model.vocab()), more = some_tokens(9, 9, model.vocab());
  for (const auto& [keep, drop] : std::vector<std::pair<int, int>>{{4, 31}, {0, 50}, {89, 1}}) {
    const SeqId seq = session.open();
    append(session, seq, tokens, 128);
    const SeqId copy = session.fork(seq);
    session.shift(seq, keep, drop);
    CHECK(session.length(seq) == 90 - drop);
    Tokens rest(tokens.begin(), tokens.begin() + keep);
    rest.insert(rest.end(), tokens.begin() + keep + drop, tokens.end());
    const Logits after = append(session, seq, more, 128);
    const Logits plain = fresh(session, joined(rest, more), 128);
    for (Dim i = 0; i < after.rows; ++i) {
      CHECK(row_difference(after, i, plain, plain.rows - after.rows + i) <= reordered);
    }
    // A fork keeps what it had.
    CHECK(same_tail(fresh(session, joined(tokens, more), 128), append(session, copy, more, 128)));
    session.close(seq);
    session.close(copy);
  }
  const SeqId seq = session.open();
  append(session, seq, tokens, 128);
  session.shift(seq, 10, 0);
  CHECK(session.length(seq) == 90);
  CHECK_THROWS_AS(session.shift(seq, 80, 11), RequestError);
  CHECK_THROWS_AS(session.shift(seq, -1, 1), RequestError);
}

}  // namespace

TEST_CASE("token trees: every node sees its own path; accepted paths go on", "[laws]") {
  check_trees<WithGqa<Tree<Causal>, Plain>>(sizes({{"attention.head_count_kv", 2}}));
  check_trees<WithGqa<Tree<Causal>, Pages<4>>>(sizes({{"attention.head_count_kv", 2}}));
  check_trees<WithGqa<Tree<SlidingWindow>, Plain>>(sizes({{"attention.sliding_window", 6}}));
}

TEST_CASE("a sequence that lost rows in the middle", "[laws]") {
  check_shift<WithGqa<Causal, Plain>>({{"attention.head_count_kv", 2}});
  check_shift<WithGqa<Causal, Pages<16>>>({{"rope.dimension_count", 4}});
  check_shift<WithMla<Causal, Pages<16>>>({{"attention.kv_lora_rank", 24},
                                           {"rope.dimension_count", 8},
                                           {"attention.key_length_mla", 16},
                                           {"attention.value_length_mla", 8},
                                           {"attention.q_lora_rank", 0}});
}

TEST_CASE("a ring refuses what it cannot do", "[laws]") {
  using M = WithGqa<SlidingWindow, Window>;
  const AnyModel model(
      M::bind(random_source::Source::of<M>(sizes({{"attention.sliding_window", 8}}))));
  auto session = model.open({.context = 64, .step_tokens = 4}, {.threads = 1});
  const SeqId seq = session.open();
  append(session, seq, some_tokens(30, 3, model.vocab()), 4);
  CHECK_THROWS_AS(session.fork(seq), RequestError);
  CHECK_THROWS_AS(session.shift(seq, 0, 1), RequestError);
  CHECK_THROWS_AS(session.truncate(seq, 20), RequestError);
  CHECK(session.length(seq) == 30);
}

TEST_CASE("fused projections are the separate ones, partial rotary included", "[laws]") {
  using Fused = zoo::Phi3<RopeHalves, Plain, F32>;
  using Apart = laws::Model<Gqa<GqaSpec{}, Causal, RopeHalves, Plain>>;
  const auto keys = sizes({{"attention.head_count_kv", 2}, {"rope.dimension_count", 4}});
  const auto fused = random_source::Source::of<Fused>(keys, {"blk.1.attn_qkv.bias"});
  auto apart = random_source::Source::of<Fused>(keys, {"blk.1.attn_qkv.bias"});
  const auto split = [&](const std::string& name, Dim columns,
                         const std::vector<std::pair<std::string, Dim>>& parts) {
    const std::vector<float> values = apart.values(name);
    apart.remove(name);
    auto at = values.begin();
    for (const auto& [part, rows] : parts) {
      std::vector<Dim> shape{rows};
      if (columns > 1) shape.push_back(columns);
      apart.put(part, shape, {at, at + rows * columns});
      at += rows * columns;
    }
    REQUIRE(at == values.end());
  };
  for (const std::string at : {"blk.0.", "blk.1."}) {
    split(at + "attn_qkv.weight", 32,
          {{at + "attn_q.weight", 32}, {at + "attn_k.weight", 16}, {at + "attn_v.weight", 16}});
    split(at + "ffn_up.weight", 32, {{at + "ffn_gate.weight", 48}, {at + "ffn_up.weight", 48}});
  }
  split("blk.1.attn_qkv.bias", 1,
        {{"blk.1.attn_q.bias", 32}, {"blk.1.attn_k.bias", 16}, {"blk.1.attn_v.bias", 16}});
  const auto run = [](const AnyModel& model) {
    auto session = model.open({.context = 64, .step_tokens = 64}, {.cache = "f32", .threads = 1});
    return fresh(session, some_tokens(50, 3, model.vocab()), 64);
  };
  CHECK(reference::same_bits(run(AnyModel(Fused::bind(fused))), run(AnyModel(Apart::bind(apart)))));
}
