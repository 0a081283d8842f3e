#pragma once
// What the mixers of a model are given on a text: the vectors on which a conversion's error counts.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../kernels/cpu.hpp"
#include "../mixer/layer_step.hpp"
#include "../model/concepts.hpp"

namespace tenon::inline TENON_ABI {

// Rows [tokens, width] for each layer: its input after the norm.
class MixerInputs {
 public:
  MixerInputs(int layers, Dim width)
      : width_((std::max)(width, Dim{1})), rows_(static_cast<std::size_t>((std::max)(layers, 0))) {}

  int layers() const { return static_cast<int>(rows_.size()); }
  Dim width() const { return width_; }
  Dim tokens() const { return rows_.empty() ? 0 : tokens_of(0); }
  Dim tokens_of(int layer) const {
    return static_cast<Dim>(rows_[static_cast<std::size_t>(layer)].size()) / width_;
  }
  MatView<const float> of(int layer) const {
    return matrix(rows_[static_cast<std::size_t>(layer)].data(), tokens_of(layer), width_);
  }
  // x: [tokens, width]. ShapeError when the layer or the width is not one of these.
  void add(int layer, MatView<const float> x) {
    if (layer < 0 || layer >= layers() || x.extent(1) != width_) {
      fail<ShapeError>("inputs to record must be of one of ", layers(), " layers and ", width_,
                       " values wide, they are of layer ", layer, " and ", x.extent(1),
                       "; make MixerInputs with the sizes of the model that runs");
    }
    auto& rows = rows_[static_cast<std::size_t>(layer)];
    rows.insert(rows.end(), x.data, x.data + x.extent(0) * width_);
  }

  // While it lives, Recorded mixers of this thread's sessions add their inputs to `inputs`.
  class Recording {
   public:
    explicit Recording(MixerInputs& inputs) : previous_(std::exchange(current(), &inputs)) {}
    ~Recording() { current() = previous_; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    MixerInputs* previous_;
  };
  // Null when this thread records nothing.
  static MixerInputs*& current() {
    thread_local MixerInputs* inputs = nullptr;
    return inputs;
  }

 private:
  Dim width_;
  std::vector<std::vector<float>> rows_;  // [layers]
};

// A mixer that can be listened to: Block<Recorded<Gqa<...>>, ...> computes what Block<Gqa<...>,
// ...> does. Recording allocates, so this is for calibration, not for serving.
template <class Mixer>
struct Recorded : Mixer {
  template <class Formats>
  static void forward(Cpu& cpu, const typename Mixer::template Weights<Formats>& weights,
                      typename Mixer::Store& store, Slot slot, const LayerStep& step,
                      MatView<const float> x, MatView<float> y, bool accumulate) {
    if (MixerInputs* inputs = MixerInputs::current(); inputs != nullptr && !cpu.measuring()) {
      inputs->add(step.layer, x);
    }
    Mixer::template forward<Formats>(cpu, weights, store, slot, step, x, y, accumulate);
  }
};

// The inputs of all mixers on `tokens`, at most a context of them, from a session of a model whose
// mixers are Recorded. RequestError when there are none or too many.
template <ModelSession S>
MixerInputs record_inputs(S& session, int layers, Dim width, std::span<const Token> tokens) {
  const Limits limits = session.limits();
  if (tokens.empty() || tokens.size() > static_cast<std::size_t>(limits.context)) {
    fail<RequestError>("the text to record must have 1 to ", limits.context,
                       " tokens, the session's context, it has ", tokens.size(),
                       "; pass a part of it, or open the session with a larger Limits::context");
  }
  MixerInputs inputs(layers, width);
  const SeqId seq = session.open();
  try {
    const MixerInputs::Recording recording(inputs);
    const auto most = static_cast<std::size_t>(limits.step_tokens);
    for (std::size_t at = 0; at < tokens.size(); at += most) {
      const auto part = tokens.subspan(at, (std::min)(most, tokens.size() - at));
      const int count = static_cast<int>(part.size());
      session.forward({{&seq, 1}, {&count, 1}, part, {}, {}, {}},
                      matrix<float>(nullptr, 0, session.vocab()), {});
    }
  } catch (...) {
    session.close(seq);
    throw;
  }
  session.close(seq);
  return inputs;
}

}  // namespace tenon::inline TENON_ABI
