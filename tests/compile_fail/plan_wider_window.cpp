// expect: tenon: a layer that reads another's keys and values must not see further back than
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
using Reader = Causal;
#else
using Reader = SlidingWindow;
#endif
// Odd layers read the rows of the even ones before them.
struct Pairs {
  static constexpr bool fixed = true;
  constexpr LayerRef at(int layer, const ModelConfig&) const {
    return {layer % 2, layer - layer % 2};
  }
};
template <class Mask, class FeedForward>
using Layer = Block<Gqa<GqaSpec{}, Mask, Rope, Contiguous<F32>>, FeedForward, RmsNorm>;
using Twins = Kinds<Layer<SlidingWindow, SwiGlu>, Layer<Reader, GeGlu>>;
static_assert(sizeof(Decoder<Twins, Pairs{}, F32>) > 0);
