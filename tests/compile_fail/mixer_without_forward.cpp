// expect: tenon: a Mixer must provide `static void forward(Cpu&, const Weights<F>&, Store&, Slot,
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Nothing {
  using Store = Contiguous<F32>;
  struct Config {
    static constexpr Config read(const ModelConfig&, int) { return {}; }
  };
  template <class Formats>
  struct Weights {
    Config config;
  };
  static constexpr RowSpec rows(const Config&) { return {}; }
#ifndef TENON_EXPECT_FAIL
  template <class Formats>
  static void forward(Cpu&, const Weights<Formats>&, Store&, Slot, const LayerStep&,
                      MatView<const float>, MatView<float>, bool) {}
#endif
};
static_assert(sizeof(Block<Nothing, SwiGlu, RmsNorm>) > 0);
