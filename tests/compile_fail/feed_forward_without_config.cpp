// expect: tenon: a feed-forward layer must provide `struct Config`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Nothing {
#ifndef TENON_EXPECT_FAIL
  struct Config {
    static constexpr Config read(const ModelConfig&, int) { return {}; }
  };
#else
  struct Config {};
#endif
  template <class Formats>
  struct Weights {
    Config config;
  };
  template <class Formats>
  static void forward(Cpu&, const Weights<Formats>&, MatView<const float>, MatView<float>, bool) {}
};
using Attention = Gqa<GqaSpec{}, Causal, Rope, Contiguous<F32>>;
static_assert(sizeof(Block<Attention, Nothing, RmsNorm>) > 0);
