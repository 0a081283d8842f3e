// expect: tenon: a layer can only read the keys and values of a layer with the same cache type
#include <tenon/cache/paged.hpp>
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
using Other = Paged<F32, 16>;
#else
using Other = Contiguous<F32>;
#endif
// Odd layers read the rows of the even ones before them.
struct Pairs {
  static constexpr bool fixed = true;
  constexpr LayerRef at(int layer, const ModelConfig&) const {
    return {layer % 2, layer - layer % 2};
  }
};
template <class Cache, class FeedForward>
using Layer = Block<Gqa<GqaSpec{}, Causal, Rope, Cache>, FeedForward, RmsNorm>;
using Twins = Kinds<Layer<Contiguous<F32>, SwiGlu>, Layer<Other, GeGlu>>;
static_assert(sizeof(Decoder<Twins, Pairs{}, F32>) > 0);
