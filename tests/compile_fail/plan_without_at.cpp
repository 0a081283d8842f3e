// expect: tenon: a layer plan must provide `constexpr LayerRef at(int layer, const ModelConfig&)
// const`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Plan {
#ifndef TENON_EXPECT_FAIL
  constexpr LayerRef at(int layer, const ModelConfig&) const {
    return {0, layer};
  }
#endif
};
static_assert(sizeof(Decoder<Kinds<zoo::LlamaLayer<Contiguous<F32>>>, Plan{}, F32>) > 0);
