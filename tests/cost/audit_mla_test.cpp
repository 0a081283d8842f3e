// What kernels count is what cost/ predicts: latent attention, absorbed and written out.
#include "cost/audit.hpp"

using namespace audit;

namespace {

template <class Mask, class Cache, Expand Expanding = Expand::never>
using Latent =
    Composed<Block<Mla<MlaSpec{.expand = Expanding}, Mask, Rope, Cache>, SwiGlu, RmsNorm>>;
using Flat = Contiguous<CacheFormats>;
using Pages = Paged<CacheFormats, 16>;
using Rolling = Ring<CacheFormats>;

const std::vector<int> whole{150, 1, 1}, chunks{70, 1, 33, 64, 1};

// Keys and values written out are less work from 256 (64 + 64) / (512 - 128) = 85.3 tokens on.
std::vector<random_source::Key> latents(double heads, double nope, double q_rank = 0,
                                        double window = 0) {
  auto keys = audit::sizes({{"attention.kv_lora_rank", 256},
                            {"rope.dimension_count", 32},
                            {"attention.key_length_mla", nope + 32},
                            {"attention.value_length_mla", 64},
                            {"attention.q_lora_rank", q_rank}});
  if (window > 0) keys.push_back({"attention.sliding_window", window});
  keys[4].number = heads;
  return keys;
}

}  // namespace

TEST_CASE("audit: absorbed latents", "[cost][audit]") {
  Audited<Latent<Causal, Flat>> flat(latents(4, 64)), compressed(latents(4, 64, 256));
  Audited<Latent<Causal, Pages>> paged(latents(4, 64));
  Audited<Latent<SlidingWindow, Rolling>> ring(latents(4, 64, 0, 40));
  for (const char* cache : {"f32", "f16", "q8_0"}) {
    for (const int batch : {1, 2}) {
      flat.check(cache, batch, whole);
      flat.check(cache, batch, chunks);
      compressed.check(cache, batch, chunks);
      paged.check(cache, batch, chunks);
      ring.check(cache, batch, chunks);
    }
  }
  for (const char* format : {"q8_0", "q4_0", "q4_k"}) {
    Audited<Latent<Causal, Flat>> blocks(latents(4, 256, 256), format);
    blocks.check("f16", 2, chunks);
  }
}

TEST_CASE("audit: latents written out in steps of more tokens than the crossover",
          "[cost][audit]") {
  using Expanded = Latent<Causal, Flat, Expand::prefill>;
  Audited<Expanded> flat(latents(4, 64));
  Audited<Latent<Causal, Pages, Expand::prefill>> paged(latents(4, 64), "q8_0");
  CHECK(flat.sizes("f16").groups[0].layer.mixer.expand_above == 85);
  for (const char* cache : {"f32", "f16", "q8_0"}) {
    for (const int batch : {1, 2}) {
      for (const std::vector<int>& steps : {std::vector{150, 1}, {85, 86, 1}, {30, 100, 90}}) {
        flat.check(cache, batch, steps);
        paged.check(cache, batch, steps);
      }
    }
  }
}
