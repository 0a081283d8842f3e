#pragma once
// Layers of experts as small checkpoints, bound and run.
#include <cmath>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/model/config_storage.hpp"
#include "tenon/model/loader.hpp"
#include "tenon/nn/moe.hpp"

namespace moe_layers {

using namespace tenon;
using weights::normal;
using weights::same_bits;

using Mixtral = Moe<MoeSpec{}>;
using DeepSeek = Moe<MoeSpec{.renormalise = false, .shared = true}>;
using GptOss =
    Moe<MoeSpec{.gate = Gate::softmax_of_chosen, .renormalise = false, .bias = true}, ClampedSilu>;
using QwenNext = Moe<MoeSpec{.shared = true, .shared_gate = true}>;
using Stored = AnyOf<F32, Q8_0, Mxfp4>;

// One layer of a checkpoint in memory. Matrices have the given format, the rest is F32.
class Checkpoint final : public TensorSource {
 public:
  Checkpoint() {
    metadata_.set("general.architecture", "test");
    number("block_count", 1);
  }
  std::string_view origin() const override { return "test.gguf"; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    for (const TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  void number(const std::string& key, double value) {
    metadata_.set("test." + key, static_cast<float>(value));
  }
  void flag(const std::string& key, bool value) { metadata_.set("test." + key, value); }
  // The values that a tensor decodes to, and the tensor.
  std::map<std::string, std::vector<float>> values;
  void tensor(const std::string& name, std::vector<Dim> shape, int type, std::vector<float> x) {
    const Dim columns = shape.back(), rows = static_cast<Dim>(x.size()) / columns;
    auto& bytes = data_.emplace_back();
    FormatList<Stored>::visit(tag_of_ggml_type<Stored>(type), [&]<class F>(F) {
      const std::size_t row = row_bytes<F>(columns);
      bytes.resize(row * static_cast<std::size_t>(rows));
      for (Dim r = 0; r < rows; ++r) {
        std::byte* at = bytes.data() + static_cast<std::size_t>(r) * row;
        encode_row<F>(x.data() + r * columns, columns, at);
        decode_part<F>(at, 0, columns, x.data() + r * columns);
      }
    });
    values[name] = std::move(x);
    tensors_.push_back({"blk.0." + name, type, std::move(shape), bytes});
  }

 private:
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::deque<std::vector<std::byte>> data_;
};

struct Sizes {
  Dim width = 48, hidden = 40, experts = 8, used = 2, shared = 0, groups = 0, groups_used = 0;
  int gate = 0;          // expert_gating_func; 0: not stated
  int renormalise = -1;  // -1: not stated
  double scale = 0;      // 0: not stated
  bool bias = false, selection_bias = false, shared_gate = false;
  int format = F32::ggml_type;
};
inline Checkpoint checkpoint(const Sizes& s, unsigned seed = 1) {
  Checkpoint c;
  c.number("expert_count", static_cast<double>(s.experts));
  c.number("expert_used_count", static_cast<double>(s.used));
  c.number("feed_forward_length", 999);
  c.number("expert_feed_forward_length", static_cast<double>(s.hidden));
  if (s.groups != 0) {
    c.number("expert_group_count", static_cast<double>(s.groups));
    c.number("expert_group_used_count", static_cast<double>(s.groups_used));
  }
  if (s.gate != 0) c.number("expert_gating_func", s.gate);
  if (s.renormalise >= 0) c.flag("expert_weights_norm", s.renormalise == 1);
  if (s.scale != 0) c.number("expert_weights_scale", s.scale);
  const auto add = [&](const std::string& name, std::vector<Dim> shape, int type, float scale) {
    Dim n = 1;
    for (const Dim d : shape) n *= d;
    c.tensor(name, std::move(shape), type, normal(n, seed++, scale));
  };
  const float in = 1 / std::sqrt(static_cast<float>(s.width));
  const float inner = 1 / std::sqrt(static_cast<float>(s.hidden));
  add("ffn_gate_inp.weight", {s.experts, s.width}, F32::ggml_type, 2 * in);
  add("ffn_gate_exps.weight", {s.experts, s.hidden, s.width}, s.format, 2 * in);
  add("ffn_up_exps.weight", {s.experts, s.hidden, s.width}, s.format, 3 * in);
  add("ffn_down_exps.weight", {s.experts, s.width, s.hidden}, s.format, inner);
  if (s.bias) {
    add("ffn_gate_inp.bias", {s.experts}, 0, 0.5f);
    add("ffn_gate_exps.bias", {s.experts, s.hidden}, 0, 3);
    add("ffn_up_exps.bias", {s.experts, s.hidden}, 0, 3);
    add("ffn_down_exps.bias", {s.experts, s.width}, 0, 1);
  }
  if (s.selection_bias) add("exp_probs_b.bias", {s.experts}, 0, 0.2f);
  if (s.shared > 0) {
    c.number("expert_shared_count", static_cast<double>(s.shared));
    const Dim hidden = s.shared * s.hidden;
    add("ffn_gate_shexp.weight", {hidden, s.width}, s.format, 2 * in);
    add("ffn_up_shexp.weight", {hidden, s.width}, s.format, in);
    add("ffn_down_shexp.weight", {s.width, hidden}, s.format, inner);
  }
  if (s.shared_gate) add("ffn_gate_inp_shexp.weight", {s.width}, 0, in);
  return c;
}

template <class M, class Formats>
auto bind(const Checkpoint& source, Dim width) {
  const ConfigStorage storage(source);
  typename M::template Weights<Formats> w;
  REQUIRE(storage.view().layers() == 1);
  w.config = M::Config::read(storage.view(), 0);
  SerialExecutor serial;
  Loader<Formats> loader(source, serial);
  loader.within("blk.0.");
  w.visit(loader, Axis{width, "embedding_length"});
  loader.refuse_unused();
  storage.refuse_unread(source.origin());
  return w;
}

struct Run {
  Isa isa = supported(Isa::avx2) ? Isa::avx2 : Isa::scalar;
  Activations activations = Activations::f32;
  int threads = 1;
  bool accumulate = false;
  float before = 0;
  int room = 0;              // tokens that scratch is measured for; 0: as many as there are
  Executor* team = nullptr;  // instead of `threads` that run one after another
};
template <class M, class W>
std::vector<float> run(const W& w, const std::vector<float>& x, Dim width, const Run& how = {}) {
  const Dim tokens = static_cast<Dim>(x.size()) / width;
  std::vector<float> y(x.size(), how.before);
  Backwards serial(how.threads);
  Executor& team = how.team != nullptr ? *how.team : serial;
  Workspace unbacked;
  Cpu measure(how.isa, how.activations, team, unbacked);
  const Dim room = how.room == 0 ? tokens : how.room;
  M::forward(measure, w, matrix<const float>(nullptr, room, width),
             matrix<float>(nullptr, room, width), how.accumulate);
  Workspace work(unbacked.peak());
  Cpu cpu(how.isa, how.activations, team, work);
  const auto before = test::allocations_so_far();
  M::forward(cpu, w, matrix<const float>(x.data(), tokens, width), matrix(y.data(), tokens, width),
             how.accumulate);
  CHECK(test::allocations_so_far() == before);
  return y;
}

inline Sizes deepseek_full() {
  Sizes s;
  s.experts = 12;
  s.used = 3;
  s.shared = 2;
  s.groups = 4;
  s.groups_used = 2;
  s.gate = 2;
  s.renormalise = 1;
  s.scale = 2.5;
  s.selection_bias = true;
  return s;
}

}  // namespace moe_layers
