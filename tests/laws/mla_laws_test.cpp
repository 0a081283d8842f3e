// The laws on latent attention.
#include "laws/compositions.hpp"
#include "laws/laws.hpp"

using namespace laws;

namespace {

std::vector<random_source::Key> latent(std::vector<random_source::Key> more) {
  auto keys = sizes({{"attention.kv_lora_rank", 24},
                     {"rope.dimension_count", 8},
                     {"attention.key_length_mla", 16},
                     {"attention.value_length_mla", 8},
                     {"attention.q_lora_rank", 0}});
  for (random_source::Key& key : more) keys.push_back(std::move(key));
  return keys;
}

}  // namespace

TEST_CASE("latent, causal: contiguous and paged", "[laws]") {
  check<WithMla<Causal, Plain>, WithMla<Causal, Pages<4>>, WithMla<Causal, Pages<16>>,
        WithMla<Causal, Pages<64>>>(latent({}));
}

TEST_CASE("latent, window: contiguous, paged and ring", "[laws]") {
  check<WithMla<SlidingWindow, Plain>, WithMla<SlidingWindow, Window>,
        WithMla<SlidingWindow, Pages<16>>>(latent({{"attention.sliding_window", 24}}));
}
