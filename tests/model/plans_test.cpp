// Layer plans as values, what they cost, and layers that read the keys and values of others.
#include "catch.hpp"
#include "laws/compositions.hpp"
#include "laws/laws.hpp"
#include "tenon/model/table_plan.hpp"
#include "tenon/zoo/gemma4.hpp"
#include "tenon/zoo/hybrid.hpp"

using namespace laws;

namespace {

constexpr ModelConfig any{};

// Layers that own their rows among the first `layers`.
template <class P>
constexpr int owners(const P& plan, int layers) {
  int n = 0;
  for (int i = 0; i < layers; ++i) n += plan.at(i, any).source == i ? 1 : 0;
  return n;
}

// Every sixth layer sees everything, all of these on one store; the others share in threes.
constexpr Interleave chai{
    .period = 6, .rare_at = 5, .share_common = 3, .share_rare = Interleave::all};
static_assert(chai.at(5, any) == LayerRef{1, 5} && chai.at(11, any) == LayerRef{1, 5});
static_assert(chai.at(0, any) == LayerRef{0, 0} && chai.at(2, any) == LayerRef{0, 0});
static_assert(chai.at(3, any) == LayerRef{0, 3} && chai.at(4, any) == LayerRef{0, 3});
static_assert(chai.at(6, any) == LayerRef{0, 6} && chai.at(8, any) == LayerRef{0, 6});
static_assert(owners(chai, 24) == 9);  // two runs in each period, and one for all rare ones

// Five local layers to one global: Gemma 3.
constexpr Interleave gemma{.period = 6, .rare_at = 5};
static_assert(gemma.at(4, any) == LayerRef{0, 4} && gemma.at(11, any) == LayerRef{1, 11});
static_assert(owners(gemma, 12) == 12);

constexpr Interleave pairs_of_rare{.period = 2, .rare_at = 1, .share_rare = 2};
static_assert(pairs_of_rare.at(3, any) == LayerRef{1, 1});
static_assert(pairs_of_rare.at(5, any) == LayerRef{1, 5});

// CLA of factor f computes keys and values in ceil(L / f) layers (arXiv 2405.12981).
static_assert(owners(SharedInRuns{1}, 20) == 20 && owners(SharedInRuns{2}, 20) == 10 &&
              owners(SharedInRuns{3}, 20) == 7 && owners(SharedInRuns{4}, 20) == 5);

constexpr Cycle jamba{{0, 1, 0, 1, 2, 1, 0, 1}};
static_assert(jamba.at(4, any) == LayerRef{2, 4} && jamba.at(12, any) == LayerRef{2, 12});

}  // namespace

TEST_CASE("plans of the zoo read the checkpoint", "[plan]") {
  const std::vector<double> pattern{1, 1, 0, 1, 1, 0}, sources{0, 0, 2, 2, 4, 2};
  const std::vector<ConfigEntry> entries{
      {"block_count", 6, {}, {}, false},
      {"attention.sliding_window_pattern", 0, pattern, {}, false},
      {"attention.shared_kv_layers", 3, {}, {}, false},
      {"attention.kv_source", 0, sources, {}, false}};
  const ModelConfig config{"x", entries};
  const zoo::Gemma4Plan gemma4;
  CHECK(gemma4.at(2, config) == LayerRef{1, 2});
  CHECK(gemma4.at(3, config) == LayerRef{0, 1});
  CHECK(gemma4.at(4, config) == LayerRef{0, 1});
  CHECK(gemma4.at(5, config) == LayerRef{1, 2});
  const zoo::HybridPlan hybrid;
  CHECK(hybrid.at(1, config) == LayerRef{0, 0});
  CHECK(hybrid.at(2, config) == LayerRef{1, 2});
  CHECK(hybrid.at(3, config) == LayerRef{2, 2});
  CHECK(hybrid.at(5, config) == LayerRef{1, 2});
  const TablePlan<"attention.sliding_window_pattern", "attention.kv_source"> table;
  CHECK(table.at(4, config) == LayerRef{1, 4});
  CHECK(table.at(5, config) == LayerRef{0, 2});
}

TEST_CASE("a plan that cannot be is refused with the layer's number", "[plan]") {
  using M =
      laws::Model<Gqa<GqaSpec{}, Causal, Rope, Plain>, TablePlan<"layer_kind", "layer_source">{}>;
  const auto refusal = [](std::vector<double> kinds, std::vector<double> sources) {
    const auto good = sizes({{"layer_kind", 0, {0, 0}}, {"layer_source", 0, {0, 1}}});
    auto source = random_source::Source::of<M>(good);
    source.edit_metadata().set("random.layer_kind",
                               MetaValue{MetaType::array, MetaType::f64, kinds});
    source.edit_metadata().set("random.layer_source",
                               MetaValue{MetaType::array, MetaType::f64, sources});
    try {
      M::bind(source);
    } catch (const LoadError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto says = [](const std::string& text, std::string_view what) {
    return text.find(what) != text.npos;
  };
  CHECK(refusal({0, 0}, {0, 1}) == "accepted");
  CHECK(says(refusal({0, 1}, {0, 1}), "layer 1 names a kind that Kinds does not have"));
  CHECK(says(refusal({0, 0.5}, {0, 1}), "layer 1 names a kind"));
  CHECK(says(refusal({0, 0}, {1, 1}), "layer 0 reads the state of a later layer"));
  CHECK(says(refusal({0, 0}, {0, -3}), "layer 1 reads the state of a later layer"));
}

TEST_CASE("layers that share: identity for runs of one, bytes for the others", "[plan]") {
  using Alone = laws::Model<Gqa<GqaSpec{}, Causal, Rope, Plain>>;
  using RunsOfOne = laws::Model<Gqa<GqaSpec{}, Causal, Rope, Plain>, SharedInRuns{1}>;
  using Pairs = laws::Model<Gqa<GqaSpec{}, Causal, Rope, Plain>, SharedInRuns{2}>;
  const auto keys = sizes({{"block_count", 4}});
  const auto source = random_source::Source::of<Alone>(keys);
  const auto run = [](const AnyModel& model) {
    auto session = model.open({.context = 64, .step_tokens = 64}, {.cache = "f32", .threads = 1});
    return fresh(session, some_tokens(50, 3, model.vocab()), 64);
  };
  const AnyModel alone(Alone::bind(source)), ones(RunsOfOne::bind(source));
  CHECK(reference::same_bits(run(alone), run(ones)));

  const auto shared = random_source::Source::of<Pairs>(keys);
  CHECK(shared.find("blk.0.attn_k.weight") != nullptr);
  CHECK(shared.find("blk.1.attn_k.weight") == nullptr);  // a borrower has no keys of its own
  CHECK(shared.find("blk.1.attn_v.weight") == nullptr);
  CHECK(shared.find("blk.1.attn_q.weight") != nullptr);
  const AnyModel pairs(Pairs::bind(shared));
  const Limits limits{.context = 64};
  CHECK(2 * pairs.cache_bytes(limits) == alone.cache_bytes(limits));
}

// A layer that reads its owner's rows computes what it would from a copy of them.
TEST_CASE("reading another's rows is reading a copy of them", "[plan]") {
  using Mixer = Gqa<GqaSpec{}, Causal, Rope, Contiguous<F16>>;
  constexpr Dim width = 32;
  const auto keys = sizes({{"attention.head_count_kv", 2}});
  const auto source = random_source::Source::of<laws::Model<Mixer>>(keys);
  const ConfigStorage storage(source);
  SerialExecutor serial;
  Loader<F32> loader(source, serial);
  Mixer::Weights<F32> owner, reader;
  for (auto* weights : {&owner, &reader}) {
    weights->read(storage.view(), 0);
    loader.within(weights == &owner ? "blk.0." : "blk.1.");
    weights->visit(loader, {width, "embedding_length"}, weights == &owner);
  }
  const auto frequencies = loader.take_rotaries();
  const std::vector<RowSpec> slots(2, Mixer::rows(owner.config));
  Contiguous<F16> store(slots, {.context = 40}, {0, 0});
  Workspace work(std::size_t{1} << 22);
  Cpu cpu(choose_isa(), Activations::f32, serial, work);
  const std::vector<int> positions = [] {
    std::vector<int> all(40);
    for (int i = 0; i < 40; ++i) all[static_cast<std::size_t>(i)] = i;
    return all;
  }();
  const SeqStep seq{SeqId{0}, 0, 40, 0, nullptr, nullptr};
  RotaryAngles angles{frequencies[0].pairing, frequencies[0].rope_dim(), {}, {}};
  angles.cosines = cpu.take_matrix(40, angles.rope_dim);
  angles.sines = cpu.take_matrix(40, angles.rope_dim);
  fill_angles(frequencies[0], positions, angles);
  const LayerStep step{Step{{&seq, 1}, positions, 40}, {&angles, 1}, {}, 0};
  const auto x = cpu.take_matrix(40, width), y = cpu.take_matrix(40, width),
             copied = cpu.take_matrix(40, width);
  for (Dim i = 0; i < 40 * width; ++i) x.data[i] = static_cast<float>((i * 37 % 101) - 50) / 50;

  Mixer::forward(cpu, owner, store, Slot{0, true}, step, x, y, false);
  const std::vector<std::byte> rows(store.row(SeqId{0}, 0, 0, 0),
                                    store.row(SeqId{0}, 0, 0, 0) + 40 * store.row_stride(0, 0));
  Mixer::forward(cpu, reader, store, Slot{0, false}, step, x, y, false);
  CHECK(std::memcmp(rows.data(), store.row(SeqId{0}, 0, 0, 0), rows.size()) == 0);  // not written
  for (int plane = 0; plane < 2; ++plane) {
    std::memcpy(store.row(SeqId{0}, 1, plane, 0), store.row(SeqId{0}, 0, plane, 0),
                40 * store.row_stride(0, plane));
  }
  Mixer::forward(cpu, reader, store, Slot{1, false}, step, x, copied, false);
  CHECK(std::memcmp(y.data, copied.data, static_cast<std::size_t>(40 * width) * 4) == 0);
}
