// Bytes of cache per token, from a type and a configuration alone, against the published formulas
// and the columns of the papers: MHA, GQA and MQA, CLA (arXiv 2405.12981), MLA (arXiv 2405.04434),
// windows.
#include "catch.hpp"
#include "laws/compositions.hpp"

using namespace laws;

namespace {

template <auto Plan>
using Shared = laws::Model<Gqa<GqaSpec{}, Causal, Rope, Contiguous<F16>>, Plan>;
using Full = Shared<Uniform{}>;
using Latent = WithMla<Causal, Contiguous<F16>>;
using Windowed = WithGqa<SlidingWindow, Ring<F16>>;

template <class M>
std::size_t bytes(std::vector<random_source::Key> keys, int context) {
  keys.push_back({"vocab_size", 64});
  keys.push_back({"feed_forward_length", 64});
  keys.push_back({"attention.layer_norm_rms_epsilon", 1e-5});
  std::vector<ConfigEntry> entries;
  for (const random_source::Key& key : keys) {
    entries.push_back({key.name, key.number, {}, {}, false});
  }
  return M::cache_bytes(ModelConfig{"x", entries}, {.context = context, .step_tokens = 1});
}
// The 20-layer model of width 2048 that the CLA paper varies.
template <class M>
std::size_t per_token(double heads, double kv_heads, double head_dim) {
  const std::vector<random_source::Key> keys{
      {"embedding_length", 2048},         {"block_count", 20},
      {"attention.head_count", heads},    {"attention.head_count_kv", kv_heads},
      {"attention.key_length", head_dim}, {"attention.value_length", head_dim}};
  const std::size_t at_1024 = bytes<M>(keys, 1024);
  CHECK(at_1024 % 1024 == 0);
  CHECK(bytes<M>(keys, 2048) == 2 * at_1024);
  return at_1024 / 1024;
}

}  // namespace

TEST_CASE("bytes per token: heads and shared layers, as the paper prints them", "[cache]") {
  CHECK(per_token<Full>(16, 16, 128) == 163840);
  CHECK(per_token<Full>(16, 4, 128) == 40960);
  CHECK(per_token<Full>(16, 2, 128) == 20480);
  CHECK(per_token<Full>(16, 1, 128) == 10240);
  CHECK(per_token<Full>(32, 1, 64) == 5120);
  CHECK(per_token<Shared<SharedInRuns{2}>>(16, 1, 128) == 5120);
  CHECK(per_token<Shared<SharedInRuns{3}>>(16, 1, 128) == 3584);
  CHECK(per_token<Shared<SharedInRuns{4}>>(16, 1, 128) == 2560);
  CHECK(per_token<Shared<SharedInRuns{2}>>(16, 4, 128) == 20480);
}

TEST_CASE("bytes per token: latents of DeepSeek-V2 and V2-Lite", "[cache]") {
  const auto latent = [](double width, double layers, double heads, double q_rank) {
    const std::vector<random_source::Key> keys{
        {"embedding_length", width},       {"block_count", layers},
        {"attention.head_count", heads},   {"attention.q_lora_rank", q_rank},
        {"attention.kv_lora_rank", 512},   {"rope.dimension_count", 64},
        {"attention.key_length_mla", 192}, {"attention.value_length_mla", 128}};
    const std::size_t all = bytes<Latent>(keys, 1024);
    CHECK(all % 1024 == 0);
    return all / 1024;
  };
  CHECK(latent(5120, 60, 128, 1536) == 2 * 34560);
  CHECK(latent(2048, 27, 16, 0) == 2 * 15552);
  CHECK(latent(2048, 1, 16, 0) == 2 * (512 + 64));
}

TEST_CASE("bytes of a window stop growing at the window", "[cache]") {
  for (const int context : {512, 1024, 4096, 131072}) {
    const std::vector<random_source::Key> keys{{"embedding_length", 4096},
                                               {"block_count", 32},
                                               {"attention.head_count", 32},
                                               {"attention.head_count_kv", 8},
                                               {"attention.sliding_window", 1024}};
    const auto rows = static_cast<std::size_t>((std::min)(context, 1024));
    CHECK(bytes<Windowed>(keys, context) == 2 * rows * 8 * 128 * 32 * 2);
  }
}
