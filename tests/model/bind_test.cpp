// Binding a checkpoint to a type: what fits runs, what does not is refused by name.
#include <functional>

#include "catch.hpp"
#include "model/synthetic.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

constexpr zoo::LlamaSizes pinned_sizes{.width = 64,
                                       .layers = 2,
                                       .vocab = 300,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 16,
                                       .hidden = 96};
using Pinned = zoo::Llama<Contiguous<F32>, F32, pinned_sizes>;

// The message of the error that binding the edited checkpoint throws; "bound" when it does not.
template <class E = LoadError>
std::string refusal(const std::function<void(synthetic::Llama&)>& edit) {
  synthetic::Llama source({});
  edit(source);
  try {
    SerialExecutor serial;
    static_cast<void>(zoo::Llama<>::bind(source, serial));
  } catch (const E& error) {
    return error.what();
  }
  return "bound";
}

float logit(const auto& model) {
  SerialExecutor serial;
  auto session = model.open({.seqs = 1, .context = 8, .step_tokens = 4},
                            {.cache = "f32", .executor = &serial});
  const SeqId seq = session.open();
  const Token tokens[] = {5, 250, 9};
  const int count = 3, want = 2;
  std::vector<float> out(300);
  session.forward({{&seq, 1}, {&count, 1}, tokens, {}, {}, {&want, 1}}, matrix(out.data(), 1, 300));
  return out[17];
}

}  // namespace

TEST_CASE("a type that pins every size gives the bits of one that reads them", "[bind]") {
  const synthetic::Llama source({});
  CHECK(logit(Pinned::bind(source)) == logit(zoo::Llama<>::bind(source)));
  CHECK(logit(Pinned::bind(source)) != 0);
}

TEST_CASE("a pinned size that the checkpoint does not have is refused by name", "[bind]") {
  const auto message_for = [](const synthetic::Sizes& sizes) -> std::string {
    try {
      static_cast<void>(Pinned::bind(synthetic::Llama(sizes)));
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "bound";
  };
  CHECK_THAT(message_for({.width = 128}),
             Contains("embedding_length") && Contains("must be 64") && Contains("it is 128"));
  CHECK_THAT(message_for({.layers = 3}),
             Contains("block_count") && Contains("must be 2") && Contains("it is 3"));
  CHECK_THAT(message_for({.heads = 8}),
             Contains("attention.head_count") && Contains("must be 4") && Contains("it is 8"));
  CHECK_THAT(message_for({.kv_heads = 4}),
             Contains("attention.head_count_kv") && Contains("must be 2"));
  CHECK_THAT(message_for({.head_dim = 32}),
             Contains("attention.key_length") && Contains("must be 16"));
  CHECK_THAT(message_for({.hidden = 64}),
             Contains("feed_forward_length") && Contains("must be 96"));
  CHECK_THAT(message_for({.vocab = 299}),
             Contains("vocab_size") && Contains("must be 300") && Contains("it is 299"));
  CHECK(message_for({}) == "bound");
}

TEST_CASE("the registry picks the first type that accepts, and says what there is otherwise",
          "[bind]") {
  using Only = Registry<Entry<"llama", Pinned>>;
  using Both = Registry<Entry<"llama", Pinned, zoo::Llama<>>>;
  const synthetic::Llama small({}), wide({.width = 128});
  CHECK(logit(Both::load(small)) == logit(Pinned::bind(small)));
  CHECK(Both::load(wide).vocab() == 300);
  CHECK_THROWS_AS(Only::load(wide), ShapeError);
  synthetic::Llama other({});
  other.edit_metadata().set("general.architecture", "gpt9");
  CHECK_THROWS_WITH(Both::load(other), Contains("one of llama") && Contains("gpt9"));
}

TEST_CASE("missing, extra and misshapen tensors are named", "[bind]") {
  CHECK(refusal([](auto&) {}) == "bound");
  CHECK_THAT(
      refusal([](auto& s) { s.edit("blk.1.ffn_up.weight").name = "blk.1.ffn_sideways.weight"; }),
      Contains("blk.1.ffn_up.weight must be there"));
  CHECK_THAT(refusal([](auto& s) { s.matrix("blk.0.attn_q.scale", 4, 4); }),
             Contains("blk.0.attn_q.scale [4, 4] has no place"));
  CHECK_THAT(refusal<ShapeError>([](auto& s) { s.vector("blk.0.attn_q.bias", 4); }),
             Contains("blk.0.attn_q.bias must have shape [64]"));
  CHECK_THAT(
      refusal<ShapeError>([](auto& s) {
        std::swap(s.edit("blk.0.ffn_up.weight").shape[0], s.edit("blk.0.ffn_up.weight").shape[1]);
      }),
      Contains("blk.0.ffn_up.weight must have shape [96, 64]") && Contains("feed_forward_length") &&
          Contains("[64, 96]"));
  CHECK_THAT(refusal<ShapeError>([](auto& s) { s.put("llama.vocab_size", 301); }),
             Contains("token_embd.weight must have shape [301, 64]") && Contains("vocab_size"));
  CHECK_THAT(refusal<ShapeError>([](auto& s) {
               s.edit("output_norm.weight").shape = {64, 1};
             }),
             Contains("output_norm.weight"));
  CHECK_THAT(refusal<ShapeError>([](auto& s) { s.edit("blk.0.attn_k.weight").ggml_type = 17; }),
             Contains("blk.0.attn_k.weight must be stored as one of f32") && Contains("iq2_xs"));
  CHECK_THAT(refusal<ShapeError>([](auto& s) { s.edit("blk.0.attn_norm.weight").ggml_type = 8; }),
             Contains("blk.0.attn_norm.weight"));
}

TEST_CASE("configuration that is missing, wrong or not understood is named", "[bind]") {
  const auto set = [](const char* key, auto value) {
    return [=](synthetic::Llama& s) { s.edit_metadata().set(key, value); };
  };
  CHECK_THAT(refusal(set("llama.embedding_length", std::uint32_t{0})),
             Contains("llama.embedding_length") && Contains("it is 0"));
  CHECK_THAT(refusal(set("llama.block_count", 2.5f)), Contains("whole number") && Contains("2.5"));
  CHECK_THAT(refusal(set("llama.attention.head_count", "four")),
             Contains("attention.head_count") && Contains("it is \"four\""));
  CHECK_THAT(refusal(set("llama.attention.head_count_kv", std::uint32_t{3})),
             Contains("multiple of attention.head_count_kv") && Contains("4 and 3"));
  CHECK_THAT(refusal(set("llama.attention.value_length", std::uint32_t{8})),
             Contains("key_length") && Contains("16 and 8"));
  // Policies do not know the file; who binds them does, and names it once.
  CHECK(
      refusal(set("llama.attention.layer_norm_rms_epsilon", -1.0f)) ==
      "synthetic.gguf: metadata key \"llama.attention.layer_norm_rms_epsilon\" must lie in [0, 1), "
      "it is -1; the file is damaged");
  CHECK_THAT(refusal<ShapeError>(set("llama.rope.dimension_count", std::uint32_t{7})),
             Contains("rope.dimension_count must be even"));
  CHECK_THAT(refusal<ShapeError>(set("llama.rope.dimension_count", std::uint32_t{32})),
             Contains("it is 32"));
  CHECK_THAT(refusal(set("llama.rope.freq_base", 0.0f)),
             Contains("rope.freq_base\" must be positive"));
  CHECK_THAT(refusal(set("llama.rope.scaling.type", "dynamic")),
             Contains("rope.scaling.type") && Contains("it is \"dynamic\""));
  CHECK_THAT(refusal(set("llama.rope.scaling.type", "yarn")),
             Contains("rope.scaling.factor\" is missing"));
  // A key that would change the result and that nothing reads; zero means "not used".
  CHECK_THAT(refusal(set("llama.attention.sliding_window", std::uint32_t{4096})),
             Contains("llama.attention.sliding_window") && Contains("does not implement"));
  CHECK_THAT(refusal(set("llama.expert_count", std::uint32_t{8})), Contains("llama.expert_count"));
  CHECK(refusal(set("llama.expert_count", std::uint32_t{0})) == "bound");
  CHECK(refusal(set("general.description", "anything")) == "bound");
  // Values of a type that the key cannot have, and flags that say what the type does not do.
  CHECK_THAT(refusal(set("llama.attention.causal", false)), Contains("llama.attention.causal"));
  CHECK(refusal(set("llama.attention.causal", true)) == "bound");
  CHECK_THAT(refusal(set("llama.rope.freq_base", true)),
             Contains("rope.freq_base") && Contains("bool"));
  CHECK_THAT(refusal(set("llama.rope.freq_base", std::numeric_limits<float>::infinity())),
             Contains("rope.freq_base"));
  const MetaValue words{MetaType::array, MetaType::string, std::vector<std::string>{"4", "4"}};
  CHECK_THAT(refusal(set("llama.attention.sliding_window", words)), Contains("sliding_window"));
  CHECK_THAT(refusal(set("llama.attention.key_length", words)),
             Contains("key_length") && Contains("array of string"));
  const MetaValue three{MetaType::array, MetaType::u32, std::vector<std::uint64_t>{4, 4, 4}};
  CHECK_THAT(refusal(set("llama.attention.head_count", three)), Contains("2 layers and 3 values"));
  const MetaValue two{MetaType::array, MetaType::u32, std::vector<std::uint64_t>{4, 4}};
  CHECK(refusal(set("llama.attention.head_count", two)) == "bound");
  CHECK_THAT(refusal(set("llama.embedding_length", two)), Contains("must be one number"));
  // Sizes that no file of this length can have cost nothing before they are refused.
  CHECK_THAT(refusal<ShapeError>(set("llama.embedding_length", std::uint32_t{2147483647})),
             Contains("must have shape"));
  CHECK_THAT(refusal(set("llama.block_count", std::uint32_t{2147483647})),
             Contains("llama.block_count\" must be at most 4096"));
}

TEST_CASE("linear rope scaling is applied, not ignored", "[bind]") {
  synthetic::Llama plain({}), scaled({});
  scaled.edit_metadata().set("llama.rope.scaling.type", "linear");
  scaled.edit_metadata().set("llama.rope.scaling.factor", 4.0f);
  CHECK(logit(zoo::Llama<>::bind(plain)) != logit(zoo::Llama<>::bind(scaled)));
}

TEST_CASE("rope_freqs divides frequencies one by one", "[bind]") {
  // Llama 3.1: head_dim 64, base 5e5, factor 32, low 1, high 4, original context 8192: 15 pairs are
  // kept, 3 blended, 14 divided. The tensor carries the divisors; here they are applied.
  std::vector<float> divisors;
  int kept = 0, blended = 0, divided = 0;
  const double pi = 3.14159265358979323846;
  for (int i = 0; i < 32; ++i) {
    const double wavelength = 2 * pi * std::pow(5e5, 2.0 * i / 64);
    const double smooth = (8192 / wavelength - 1) / 3;
    const double divisor = smooth >= 1 ? 1 : smooth <= 0 ? 32 : 1 / ((1 - smooth) / 32 + smooth);
    ++(smooth >= 1 ? kept : smooth <= 0 ? divided : blended);
    divisors.push_back(static_cast<float>(divisor));
  }
  CHECK(kept == 15);
  CHECK(blended == 3);
  CHECK(divided == 14);
  const Rope rope{.base = 5e5, .factor = 1, .rope_dim = 64};
  const RotaryFrequencies plain = rope.frequencies(64, {}), scaled = rope.frequencies(64, divisors);
  CHECK(plain.radians[0] == 1);
  CHECK(plain.radians[31] == Approx(std::pow(5e5, -62.0 / 64)).epsilon(1e-12));
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(scaled.radians[i] ==
          Approx(plain.radians[i] / static_cast<double>(divisors[i])).epsilon(1e-12));
  }
}
