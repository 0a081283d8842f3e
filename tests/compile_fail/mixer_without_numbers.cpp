// expect: tenon: a Mixer whose cost is asked for must provide `static constexpr
#include <tenon/cost/composition.hpp>
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
  static constexpr MixerNumbers numbers(const Config&, Dim, bool) {
    return {};
  }
#endif
  template <class Formats>
  static void forward(Cpu&, const Weights<Formats>&, Store&, Slot, const LayerStep&,
                      MatView<const float>, MatView<float>, bool) {}
};
using Priced = Decoder<Kinds<Block<Nothing, SwiGlu, RmsNorm>>, Uniform{}, F32>;
cost::ModelSizes priced(const ModelConfig& config) {
  return cost::sizes_of<Priced>(config);
}
