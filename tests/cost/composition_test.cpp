// The cost of composed models: from a type and a configuration alone, in constant expressions, and
// against the tensors of real files and the bytes that caches take.
#include "catch.hpp"
#include "cost/published.hpp"
#include "shared_data.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/cost/registered.hpp"
#include "tenon/cost/stored.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/model/interleave.hpp"
#include "tenon/zoo/registry.hpp"

using namespace tenon;
using namespace tenon::cost;

namespace {

// [cost]
constexpr ConfigEntry llama2_13b_entries[] = {{"embedding_length", 5120},
                                              {"block_count", 40},
                                              {"vocab_size", 32000},
                                              {"feed_forward_length", 13824},
                                              {"attention.head_count", 40}};
constexpr ModelConfig llama2_13b{"llama", llama2_13b_entries};

constexpr auto half = sizes_of<zoo::Llama<>>(llama2_13b, {.weights = "f16"});
static_assert(parameters(half) == 13015864320);
static_assert(cache_bytes(half, 1024) == 838860800);
static_assert(!fits<Laptop16G>(half, 1, 4096));

constexpr auto four_bits = sizes_of<zoo::Llama<>>(llama2_13b, {.weights = "q4_k", .keys = "q8_0"});
static_assert(fits<Laptop16G>(four_bits, 1, 4096));
static_assert(four_bits.weights.matrices.bits_per_value() == 4.5);
// [cost]

constexpr zoo::LlamaSizes pinned_sizes{.width = 5120, .layers = 40, .heads = 40, .head_dim = 128};
using Pinned = zoo::Llama<Paged<Bf16, 16>, Bf16, pinned_sizes>;
constexpr auto pinned = sizes_of<Pinned>(llama2_13b);
static_assert(parameters(pinned) == parameters(published::lecture(40)) + 81 * 5120);
static_assert(cache_bytes(pinned, 100) == 7 * 16 * Dim{819200} + 4 * 7);
static_assert(cache_bytes(pinned, 112) == cache_bytes(pinned, 100));

// DeepSeek-V2: 236e9 parameters of which a token meets 21e9, as its paper's abstract says.
constexpr ConfigEntry v2_entries[] = {{"embedding_length", 5120},
                                      {"block_count", 60},
                                      {"vocab_size", 102400},
                                      {"feed_forward_length", 12288},
                                      {"attention.head_count", 128},
                                      {"attention.q_lora_rank", 1536},
                                      {"attention.kv_lora_rank", 512},
                                      {"rope.dimension_count", 64},
                                      {"attention.key_length", 192},
                                      {"attention.value_length", 128},
                                      {"leading_dense_block_count", 1},
                                      {"expert_count", 160},
                                      {"expert_used_count", 6},
                                      {"expert_shared_count", 2},
                                      {"expert_feed_forward_length", 1536}};
constexpr ModelConfig v2_config{"deepseek2", v2_entries};
constexpr auto v2 = sizes_of<zoo::DeepSeek2<>>(v2_config, {.weights = "bf16", .keys = "bf16"});
static_assert(cache_bytes_per_token(v2) == 69120);
static_assert(published::printed(static_cast<double>(parameters(v2)), 236e9, 1e9));
static_assert(published::printed(static_cast<double>(active_parameters(v2)), 21e9, 1e9));
// The same as the shape of that name.
static_assert(parameters(v2) == parameters(shape_named("deepseek-v2")) &&
              active_parameters(v2) == active_parameters(shape_named("deepseek-v2")) &&
              flops(v2, {3, 5, 99}).total() ==
                  flops(shape_named("deepseek-v2"), {3, 5, 99}).total());
static_assert(v2.size == 2 && v2.groups[0].count == 1 && v2.groups[1].count == 59);
// Expanding prompts is a policy of the type; its crossover is the floor of T* = 170.67.
using Expanding = zoo::DeepSeek2<Contiguous<Bf16>, Bf16, MlaSpec{.expand = Expand::prefill}>;
static_assert(sizes_of<Expanding>(v2_config).groups[0].layer.mixer.expand_above == 170);
static_assert(v2.groups[0].layer.mixer.expand_above == 0);

// Windows and shared layers: five local layers, which share in pairs, to one global.
template <class M, class Cache>
using Part = Block<Gqa<GqaSpec{}, M, Rope, Cache>, SwiGlu, RmsNorm>;
using Mixed = Decoder<Kinds<Part<FixedWindow<64>, Ring<F16>>, Part<Causal, Contiguous<F16>>>,
                      Interleave{.period = 6, .rare_at = 5, .share_common = 2}, F16>;
constexpr ConfigEntry mixed_entries[] = {
    {"embedding_length", 256},    {"block_count", 12},           {"vocab_size", 512},
    {"feed_forward_length", 512}, {"attention.head_count", 4},   {"attention.head_count_kv", 2},
    {"attention.key_length", 64}, {"attention.value_length", 64}};
constexpr ModelConfig mixed_config{"mixed", mixed_entries};
constexpr auto mixed = sizes_of<Mixed>(mixed_config);
constexpr Dim row = 2 * 2 * 64 * 2;  // keys and values of two heads in two bytes
static_assert(cache_bytes(mixed, 1000) == row * (6 * 64 + 2 * 1000));
static_assert(cache_traffic(mixed, 1, 1000) == row * (10 * 64 + 2 * 1000));
static_assert(cache_traffic(mixed, 1, 10) == row * 12 * 10);

// Vectors that a file may have or not: nothing but the file tells.
bool only_in_files(const std::string& name) {
  for (const char* part : {"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias",
                           "attn_sinks", "exp_probs_b", "rope_freqs", "layer_output_scale"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("capacity is what a session's cache takes", "[cost]") {
  for (const int context : {64, 1024, 4096}) {
    const Limits limits{.seqs = 2, .context = context, .step_tokens = 1};
    CHECK(static_cast<Dim>(Mixed::cache_bytes(mixed_config, limits)) ==
          2 * cache_bytes(mixed, context));
    CHECK(static_cast<Dim>(zoo::Llama<>::cache_bytes(llama2_13b, limits, "q8_0")) ==
          2 * cache_bytes(four_bits, context));
    CHECK(static_cast<Dim>(Pinned::cache_bytes(llama2_13b, limits)) ==
          2 * cache_bytes(pinned, context));
    CHECK(static_cast<Dim>(zoo::DeepSeek2<>::cache_bytes(v2_config, limits, "bf16")) ==
          2 * cache_bytes(v2, context));
  }
}

TEST_CASE("parameters are those of real files of every family", "[cost]") {
  for (const char* name :
       {"deepseek2-full", "deepseek2-lite", "gemma2", "gemma3", "gemma4", "gpt-oss", "llada",
        "llama-mha", "llama-mqa", "llama3-ropefreqs", "mixtral", "qwen2", "qwen3", "qwen3moe"}) {
    const auto path = shared_file(std::string("models/zoo/") + name + ".gguf");
    if (path.empty()) continue;
    const auto file = Gguf::open(path);
    const ConfigStorage storage(file);
    const bool tied = file.find("output.weight") == nullptr;
    const ModelSizes m = sizes_in<zoo::All>(storage.view(), {.weights = "f16", .tied = tied});
    Values there{};
    Dim bytes = 0;
    for (const TensorInfo& tensor : file.tensors()) {
      if (only_in_files(tensor.name)) continue;
      bytes += static_cast<Dim>(tensor.data.size());
      Dim n = 1;
      int axes = 0;
      for (const Dim size : tensor.shape) n *= size, axes += size > 1 ? 1 : 0;
      const bool vectors = tensor.name.ends_with(".bias");
      (axes > 1 && !vectors ? there.matrices : there.vectors) += n;
    }
    INFO(name);
    CHECK(values(m).matrices == there.matrices);
    CHECK(values(m).vectors == there.vectors);
    // Files of mixtures keep their routers in floats, gpt-oss its experts in MXFP4.
    if (active_parameters(m) == parameters(m)) CHECK(weight_bytes(m) == bytes);
  }
}

TEST_CASE("files that mix formats take what they take", "[cost]") {
  for (const char* name : {"stories260K-q4_0", "quant/llama-256-q4_k_m", "quant/llama-256-mixed",
                           "quant/llama-256-q6_k", "stories260K"}) {
    const auto path = shared_file(std::string("models/") + name + ".gguf");
    if (path.empty()) continue;
    const auto file = Gguf::open(path);
    const ConfigStorage storage(file);
    ModelSizes m = sizes_in<zoo::All>(storage.view(), storage_of(file));
    const Dim by_most = weight_bytes(m);
    average_mixtures(m, file);
    Dim bytes = 0;
    for (const TensorInfo& tensor : file.tensors()) bytes += static_cast<Dim>(tensor.data.size());
    INFO(name << ": " << bytes << " bytes, " << by_most << " by the most frequent format");
    // An average is rounded to a byte of 1024 values and a layer's values up to such blocks.
    CHECK(static_cast<double>(weight_bytes(m)) == Approx(static_cast<double>(bytes)).epsilon(0.02));
    if (weight_bytes(m) == by_most) CHECK(by_most == bytes);
  }
}

TEST_CASE("a configuration or a format that does not fit is refused by name", "[cost]") {
  CHECK_THROWS_AS(sizes_of<zoo::Llama<>>(llama2_13b, {.weights = "q9"}), RequestError);
  CHECK_THROWS_AS(sizes_of<Pinned>(mixed_config), ShapeError);
  CHECK_THROWS_AS(sizes_of<zoo::Llama<>>(ModelConfig{"llama", {}}), LoadError);
  CHECK_THROWS_AS(sizes_in<zoo::All>(mixed_config), LoadError);
}
