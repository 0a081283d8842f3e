// Mixtures of experts: each family's routing rule and whole layers against a plain model in double,
// and what must hold exactly: batches, orders, threads.
#include "tenon/nn/moe.hpp"

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/core/thread_team.hpp"
#include "tenon/model/config_storage.hpp"
#include "tenon/model/loader.hpp"

using namespace tenon;
using weights::normal;
using weights::same_bits;

namespace {

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
Checkpoint checkpoint(const Sizes& s, unsigned seed = 1) {
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
  weights::Backwards serial(how.threads);
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

// ---- the plain model ----

struct Choice {
  std::vector<Dim> experts;  // ascending
  std::vector<double> weights;
};
Choice choose(const Sizes& s, bool default_renormalise, int default_gate,
              const std::vector<double>& logits, const std::vector<float>& bias) {
  const int gate = s.gate == 0 ? default_gate : s.gate;
  const auto n = static_cast<std::size_t>(s.experts);
  std::vector<double> scores = logits;
  const auto softmax = [](std::vector<double>& v) {
    double sum = 0;
    for (double& a : v) sum += a = std::exp(a);
    for (double& a : v) a /= sum;
  };
  if (gate == 1) softmax(scores);
  if (gate == 2) {
    for (double& a : scores) a = 1 / (1 + std::exp(-a));
  }
  std::vector<double> ranks = scores;
  if (!bias.empty()) {
    for (std::size_t e = 0; e < n; ++e) ranks[e] += static_cast<double>(bias[e]);
  }
  std::vector<bool> open(n, true);
  if (s.groups > 1) {
    const auto groups = static_cast<std::size_t>(s.groups), size = n / groups;
    std::vector<std::pair<double, std::size_t>> worth;
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<double> in(ranks.begin() + static_cast<std::ptrdiff_t>(g * size),
                             ranks.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
      std::sort(in.rbegin(), in.rend());
      worth.push_back({gate == 2 ? in[0] + in[1] : in[0], g});
    }
    std::sort(worth.rbegin(), worth.rend());
    open.assign(n, false);
    for (Dim k = 0; k < s.groups_used; ++k) {
      for (std::size_t i = 0; i < size; ++i)
        open[worth[static_cast<std::size_t>(k)].second * size + i] = true;
    }
  }
  std::vector<std::pair<double, Dim>> order;
  for (std::size_t e = 0; e < n; ++e) {
    if (open[e]) order.push_back({-ranks[e], static_cast<Dim>(e)});
  }
  std::sort(order.begin(), order.end());
  Choice c;
  for (Dim k = 0; k < s.used; ++k) c.experts.push_back(order[static_cast<std::size_t>(k)].second);
  std::sort(c.experts.begin(), c.experts.end());
  for (const Dim e : c.experts) c.weights.push_back(scores[static_cast<std::size_t>(e)]);
  if (gate == 3) softmax(c.weights);
  if (s.renormalise < 0 ? default_renormalise : s.renormalise == 1) {
    const double sum = std::accumulate(c.weights.begin(), c.weights.end(), 0.0);
    for (double& w : c.weights) w /= sum;
  }
  for (double& w : c.weights) w *= s.scale == 0 ? 1 : s.scale;
  return c;
}

// A value and what float arithmetic may be away from it.
struct Bounded {
  double value = 0, error = 0;
};
constexpr double epsilon = 0x1p-24;

// Element `row` of matrix [out, in] times x, folded in float.
Bounded dot(const float* w, const std::vector<Bounded>& x) {
  Bounded sum;
  double magnitude = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = static_cast<double>(w[i]);
    sum.value += weight * x[i].value;
    sum.error += std::fabs(weight) * x[i].error;
    magnitude += std::fabs(weight * x[i].value);
  }
  sum.error += static_cast<double>(x.size()) * epsilon * magnitude;
  return sum;
}
struct Mlp {
  const float *gate, *up, *down, *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;
};
std::vector<Bounded> mlp(const Mlp& m, Dim width, Dim hidden, const std::vector<Bounded>& x,
                         bool clamped) {
  std::vector<Bounded> h;
  for (Dim j = 0; j < hidden; ++j) {
    Bounded g = dot(m.gate + j * width, x), u = dot(m.up + j * width, x);
    if (m.gate_bias != nullptr) {
      g.value += static_cast<double>(m.gate_bias[j]);
      u.value += static_cast<double>(m.up_bias[j]);
      g.error += epsilon * std::fabs(g.value);
      u.error += epsilon * std::fabs(u.value);
    }
    double slope = 1;
    if (clamped) {
      g.value = (std::min)(g.value, 7.0);
      u.value = (std::max)((std::min)(u.value, 7.0), -7.0) + 1;
      slope = 1.702;
    }
    const double a = g.value / (1 + std::exp(-slope * g.value));
    // |d(g sigmoid(slope g)) / dg| < 1.2; the exponential is good to 2 ulp of its own and moves by
    // the error of its argument, which a large gate magnifies.
    const double own = (8 + std::fabs(slope * g.value)) * epsilon * std::fabs(a * u.value);
    h.push_back({a * u.value, 1.2 * g.error * std::fabs(u.value) + std::fabs(a) * u.error + own});
  }
  std::vector<Bounded> y;
  for (Dim i = 0; i < width; ++i) {
    Bounded o = dot(m.down + i * hidden, h);
    if (m.down_bias != nullptr) {
      o.value += static_cast<double>(m.down_bias[i]);
      o.error += epsilon * std::fabs(o.value);
    }
    y.push_back(o);
  }
  return y;
}

std::vector<Bounded> plain_model(const Checkpoint& c, const Sizes& s, bool renormalise, int gate,
                                 bool clamped, const float* x) {
  const auto at = [&](const std::string& name) -> const std::vector<float>& {
    static const std::vector<float> none;
    const auto found = c.values.find(name);
    return found == c.values.end() ? none : found->second;
  };
  std::vector<Bounded> input;
  for (Dim i = 0; i < s.width; ++i) input.push_back({static_cast<double>(x[i]), 0});
  std::vector<double> logits;
  double off = 0;
  for (Dim e = 0; e < s.experts; ++e) {
    Bounded l = dot(at("ffn_gate_inp.weight").data() + e * s.width, input);
    if (s.bias)
      l.value += static_cast<double>(at("ffn_gate_inp.bias")[static_cast<std::size_t>(e)]);
    off = (std::max)(off, l.error + epsilon * std::fabs(l.value));
    logits.push_back(l.value);
  }
  const Choice choice = choose(s, renormalise, gate, logits, at("exp_probs_b.bias"));
  std::vector<Bounded> y(static_cast<std::size_t>(s.width));
  const auto add = [&](const std::vector<Bounded>& part, double weight, double weight_error) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i].value += weight * part[i].value;
      y[i].error += std::fabs(weight) * part[i].error + weight_error * std::fabs(part[i].value);
      y[i].error += 2 * epsilon * (std::fabs(weight * part[i].value) + std::fabs(y[i].value));
    }
  };
  for (std::size_t k = 0; k < choice.experts.size(); ++k) {
    const Dim e = choice.experts[k], matrix = e * s.hidden * s.width;
    Mlp m{at("ffn_gate_exps.weight").data() + matrix, at("ffn_up_exps.weight").data() + matrix,
          at("ffn_down_exps.weight").data() + matrix};
    if (s.bias) {
      m.gate_bias = at("ffn_gate_exps.bias").data() + e * s.hidden;
      m.up_bias = at("ffn_up_exps.bias").data() + e * s.hidden;
      m.down_bias = at("ffn_down_exps.bias").data() + e * s.width;
    }
    // A weight moves by at most twice what the logits are off, twice again when renormalised.
    const double weight = choice.weights[k];
    add(mlp(m, s.width, s.hidden, input, clamped), weight, std::fabs(weight) * (4 * off + epsilon));
  }
  if (s.shared > 0) {
    const Mlp m{at("ffn_gate_shexp.weight").data(), at("ffn_up_shexp.weight").data(),
                at("ffn_down_shexp.weight").data()};
    double weight = 1;
    if (s.shared_gate) {
      const Bounded g = dot(at("ffn_gate_inp_shexp.weight").data(), input);
      weight = 1 / (1 + std::exp(-g.value));
    }
    add(mlp(m, s.width, s.shared * s.hidden, input, clamped), weight, epsilon);
  }
  return y;
}

template <class M>
void check_family(const Sizes& s, bool renormalise, int gate, bool clamped = false) {
  const Checkpoint source = checkpoint(s);
  const auto w = bind<M, F32>(source, s.width);
  constexpr Dim tokens = 33;
  const std::vector<float> x = normal(tokens * s.width, 77);
  const std::vector<float> y = run<M>(w, x, s.width);
  double worst = 0, largest = 0;
  for (Dim t = 0; t < tokens; ++t) {
    const auto expected =
        plain_model(source, s, renormalise, gate, clamped, x.data() + t * s.width);
    for (Dim i = 0; i < s.width; ++i) {
      const Bounded& e = expected[static_cast<std::size_t>(i)];
      const double got = static_cast<double>(y[static_cast<std::size_t>(t * s.width + i)]);
      worst = (std::max)(worst, std::fabs(got - e.value) / e.error);
      largest = (std::max)(largest, e.error / (1 + std::fabs(e.value)));
    }
  }
  INFO("worst error " << worst << " of its bound, largest relative bound " << largest);
  CHECK(worst <= 1);
  CHECK(largest < 0.02);  // a wrong expert or factor is far outside
}

Sizes deepseek_full() {
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

}  // namespace

TEST_CASE("moe: every family's rule against a plain model in double", "[nn]") {
  check_family<Mixtral>({}, true, 1);  // also qwen3moe
  Sizes lite;
  lite.shared = 1;
  lite.renormalise = 0;
  lite.scale = 1;
  lite.gate = 1;
  check_family<DeepSeek>(lite, false, 1);
  check_family<DeepSeek>(deepseek_full(), false, 1);
  Sizes v2 = deepseek_full();  // group_limited_greedy
  v2.gate = 1;
  v2.renormalise = 0;
  v2.scale = 16;
  v2.selection_bias = false;
  check_family<DeepSeek>(v2, false, 1);
  Sizes oss;
  oss.bias = true;
  check_family<GptOss>(oss, false, 3, true);
  Sizes next;
  next.shared = 1;
  next.shared_gate = true;
  check_family<QwenNext>(next, true, 1);
}

TEST_CASE("moe: routing, each rule by hand", "[nn]") {
  Routing r;
  r.experts = 6;
  r.used = 2;
  std::vector<double> scratch(64);
  std::vector<std::int32_t> chosen(6);
  std::vector<float> weights(6);
  const auto go = [&](const std::vector<float>& logits, const std::vector<float>& bias = {}) {
    scratch.assign(static_cast<std::size_t>(route_scratch(r)), -1);
    route(r, logits.data(), bias.empty() ? nullptr : bias.data(), scratch.data(), chosen.data(),
          weights.data());
  };
  const auto log = [](double p) { return static_cast<float>(std::log(p)); };
  const std::vector<float> tenths = {log(0.1), log(0.3), log(0.05), log(0.25), log(0.2), log(0.1)};
  go(tenths);
  CHECK(chosen[0] == 1);
  CHECK(chosen[1] == 3);
  CHECK(weights[0] == Approx(0.3 / 0.55).epsilon(1e-6));
  CHECK(weights[1] == Approx(0.25 / 0.55).epsilon(1e-6));
  r.renormalise = false;
  r.scale = 2;
  go(tenths);
  CHECK(weights[0] == Approx(0.6).epsilon(1e-6));
  CHECK(weights[1] == Approx(0.5).epsilon(1e-6));
  r.gate = Gate::softmax_of_chosen;
  go(tenths);
  CHECK(weights[0] == Approx(2 * 0.3 / 0.55).epsilon(1e-6));

  // The bias chooses, the score weighs. Sigmoids of log(p / (1 - p)) are p.
  const auto logit = [](double p) { return static_cast<float>(std::log(p / (1 - p))); };
  r.gate = Gate::sigmoid;
  r.scale = 1;
  const std::vector<float> scores = {logit(0.5), logit(0.6), logit(0.7),
                                     logit(0.3), logit(0.2), logit(0.85)};
  go(scores, {0, 0, 0, 0.5f, 0, -1});
  CHECK(chosen[0] == 2);
  CHECK(chosen[1] == 3);
  CHECK(weights[0] == Approx(0.7).epsilon(1e-6));
  CHECK(weights[1] == Approx(0.3).epsilon(1e-6));

  // Groups {0, 1}, {2, 3}, {4, 5}: the sums are 1.1, 1.0, 1.05, the best ones 0.6, 0.7, 0.85.
  r.groups = 3;
  r.groups_used = 1;
  go(scores);
  CHECK(chosen[0] == 0);
  CHECK(chosen[1] == 1);
  r.group_score = GroupScore::best;
  go(scores);
  CHECK(chosen[0] == 4);
  CHECK(chosen[1] == 5);
  r.groups_used = 2;
  go(scores);
  CHECK(chosen[0] == 2);
  CHECK(chosen[1] == 5);
}

TEST_CASE("moe: equal ranks go to the lower index, numbers that are none are not hidden", "[nn]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const Gate gate : {Gate::softmax, Gate::sigmoid, Gate::softmax_of_chosen}) {
    for (const Dim groups : {1, 4}) {
      Routing r;
      r.experts = 8;
      r.used = 4;
      r.groups = groups;
      r.groups_used = groups == 1 ? 1 : 2;
      r.gate = gate;
      std::vector<double> scratch(static_cast<std::size_t>(route_scratch(r)));
      std::int32_t chosen[4];
      float weights[4];
      std::vector<float> logits(8, 0.25f);
      route(r, logits.data(), nullptr, scratch.data(), chosen, weights);
      for (int k = 0; k < 4; ++k) {
        CHECK(chosen[k] == k);
        CHECK(weights[k] == 0.25f);
      }
      for (const std::size_t at : {0u, 5u, 7u}) {
        logits.assign(8, 0.25f);
        logits[at] = nan;
        route(r, logits.data(), nullptr, scratch.data(), chosen, weights);
        for (int k = 0; k < 4; ++k) CHECK(weights[k] != weights[k]);
      }
      for (const float odd : {nan, inf, -inf}) {
        route(r, std::vector<float>(8, odd).data(), nullptr, scratch.data(), chosen, weights);
        for (int k = 0; k < 4; ++k) CHECK(chosen[k] == k);
      }
    }
  }
}

TEST_CASE("moe: a token's result does not depend on the batch or the threads", "[nn]") {
  Sizes s = deepseek_full();
  s.width = 256;
  s.hidden = 96;
  s.format = GENERATE(0, 8, 39);
  const auto w = bind<DeepSeek, Stored>(checkpoint(s), s.width);
  constexpr Dim tokens = 21;
  const std::vector<float> x = normal(tokens * s.width, 5);
  const auto row = [&](const std::vector<float>& all, Dim t) {
    return std::vector<float>(all.begin() + t * s.width, all.begin() + (t + 1) * s.width);
  };
  for (const Activations activations : {Activations::f32, Activations::int8}) {
    for (const Isa isa : weights::supported_isas()) {
      const Run base{.isa = isa, .activations = activations};
      const std::vector<float> all = run<DeepSeek>(w, x, s.width, base);
      std::vector<float> backwards;
      for (Dim t = tokens; t-- > 0;) {
        const std::vector<float> one = row(x, t);
        backwards.insert(backwards.end(), one.begin(), one.end());
      }
      const std::vector<float> reversed = run<DeepSeek>(w, backwards, s.width, base);
      for (Dim t = 0; t < tokens; ++t) {
        for (const int threads : {1, 3}) {
          Run alone = base;
          alone.threads = threads;
          alone.room = 40;
          REQUIRE(same_bits(run<DeepSeek>(w, row(x, t), s.width, alone), row(all, t)));
        }
        REQUIRE(same_bits(row(reversed, tokens - 1 - t), row(all, t)));
      }
      for (const int threads : {2, 3, 16}) {
        Run several = base;
        several.threads = threads;
        REQUIRE(same_bits(run<DeepSeek>(w, x, s.width, several), all));
      }
      ThreadTeam team(3);
      Run threaded = base;
      threaded.team = &team;
      REQUIRE(same_bits(run<DeepSeek>(w, x, s.width, threaded), all));
    }
  }
}

TEST_CASE("moe: one token with two experts is work for all threads", "[nn]") {
  // Counts the tiles that each worker would compute: shares of two groups of one row.
  Sizes s;
  s.width = 64;
  s.hidden = 160;
  const auto w = bind<Mixtral, F32>(checkpoint(s), s.width);
  std::vector<float> gate(160), up(160);
  std::vector<LinearGroup<F32>> groups;
  for (const std::size_t e : {2u, 5u}) {
    groups.push_back({static_cast<Dim>(groups.size()), 1, {}, 2});
    groups.back().outputs[0] = {&w.gate[e], matrix(gate.data(), 1, 160)};
    groups.back().outputs[1] = {&w.up[e], matrix(up.data(), 1, 160)};
  }
  CHECK(detail::work_of(groups[0]) == 20);
  const std::vector<float> x = normal(2 * 64, 3);
  const LinearRows rows{x.data(), {}, 2, 64};
  for (int worker = 0; worker < 4; ++worker) {
    gate.assign(160, -7);
    up.assign(160, -7);
    detail::run_groups<F32>(Isa::scalar, rows, groups, Activations::f32,
                            share(40, Worker{worker, 4}));
    const auto written = [](const std::vector<float>& v) {
      return v.size() - static_cast<std::size_t>(std::count(v.begin(), v.end(), -7.0f));
    };
    CHECK(written(worker % 2 == 0 ? gate : up) == 160);
    CHECK(written(worker % 2 == 0 ? up : gate) == 0);
  }
}

TEST_CASE("moe: every expert, one expert for all, and adding to what is there", "[nn]") {
  Sizes s;
  s.used = s.experts;
  check_family<Mixtral>(s, true, 1);

  s = Sizes{};
  Checkpoint source = checkpoint(s);
  const std::vector<float> x = normal(30 * s.width, 9);
  auto w = bind<Mixtral, F32>(source, s.width);
  const std::vector<float> plain = run<Mixtral>(w, x, s.width);
  const std::vector<float> added =
      run<Mixtral>(w, x, s.width, {.accumulate = true, .before = 100.5f});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += added[i] == 100.5f + plain[i] ? 0u : 1u;
  CHECK(wrong == 0);

  // All logits equal: every token to experts 0 and 1, half and half.
  std::vector<std::byte> zeros(static_cast<std::size_t>(s.experts * s.width * 4));
  SerialExecutor serial;
  w.router = PackedMatrix<F32>::pack(0, zeros, s.experts, s.width, serial);
  const std::vector<float> crowded = run<Mixtral>(w, x, s.width);
  w.config.routing.used = 1;
  std::vector<float> expected = run<Mixtral>(w, x, s.width);  // expert 0 alone, weight 1
  std::swap(w.gate[0], w.gate[1]);
  std::swap(w.up[0], w.up[1]);
  std::swap(w.down[0], w.down[1]);
  const std::vector<float> second = run<Mixtral>(w, x, s.width);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected[i] = std::fma(second[i], 0.5f, 0.5f * expected[i]);
  }
  CHECK(same_bits(crowded, expected));
}

TEST_CASE("moe: a token that is not a number spoils itself only", "[nn]") {
  Sizes s = deepseek_full();
  const auto w = bind<DeepSeek, F32>(checkpoint(s), s.width);
  std::vector<float> x = normal(9 * s.width, 4);
  const std::vector<float> clean = run<DeepSeek>(w, x, s.width);
  x[static_cast<std::size_t>(4 * s.width + 7)] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = run<DeepSeek>(w, x, s.width);
  for (Dim t = 0; t < 9; ++t) {
    for (Dim i = 0; i < s.width; ++i) {
      const auto at = static_cast<std::size_t>(t * s.width + i);
      if (t == 4 ? y[at] == y[at] : y[at] != clean[at]) FAIL("token " << t << ", value " << i);
    }
  }
}

TEST_CASE("moe: metadata that cannot be", "[nn]") {
  using Change = std::function<void(Checkpoint&)>;
  const auto refusal = [](const Change& change) -> std::string {
    Checkpoint source = checkpoint(deepseek_full());
    change(source);
    try {
      bind<DeepSeek, F32>(source, 48);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto number = [](std::string key, double value) -> Change {
    return [=](Checkpoint& c) { c.number(key, value); };
  };
  CHECK(refusal([](Checkpoint&) {}) == "accepted");
  CHECK(refusal(number("expert_used_count", 13)) ==
        "metadata key \"test.expert_used_count\" must be at most expert_count = 12, it is 13; the "
        "file is damaged");
  CHECK(refusal(number("expert_used_count", 0)) ==
        "metadata key \"test.expert_used_count\" must be a whole number from 1 to 2147483647, it "
        "is 0; the file is damaged");
  CHECK(refusal(number("expert_group_count", 5)) ==
        "metadata key \"test.expert_group_count\" must divide expert_count = 12, it is 5; the file "
        "is damaged");
  CHECK(refusal(number("expert_group_count", 24)) ==
        "metadata key \"test.expert_group_count\" must divide expert_count = 12, it is 24; the "
        "file is damaged");
  CHECK(refusal(number("expert_group_used_count", 5)) ==
        "metadata key \"test.expert_group_used_count\" must be 1 to 4 so that 3 experts can be "
        "chosen, it is 5; the file is damaged");
  CHECK(refusal([](Checkpoint& c) {
          c.number("expert_used_count", 4);
          c.number("expert_group_used_count", 1);
        }) ==
        "metadata key \"test.expert_group_used_count\" must be 2 to 4 so that 4 experts can be "
        "chosen, it is 1; the file is damaged");
  CHECK(refusal(number("expert_gating_func", 4)) ==
        "metadata key \"test.expert_gating_func\" must be 1 (softmax), 2 (sigmoid) or 3 (softmax "
        "over the chosen), it is 4; compose the model with a layer that implements it");
  CHECK(
      refusal(number("expert_weights_scale", std::numeric_limits<double>::infinity())) ==
      "metadata key \"test.expert_weights_scale\" must be a finite number, it is inf; the file is "
      "damaged");
  CHECK(refusal(number("expert_count", 2e9)).find("must have shape") != std::string::npos);
  CHECK(refusal(number("expert_shared_count", 2147483520.0)).find("must have shape") !=
        std::string::npos);
  CHECK(refusal(number("expert_shared_count", 0)).find("has no place") != std::string::npos);
  CHECK(refusal(number("expert_shared_feed_forward_length", 81)).find("must have shape") !=
        std::string::npos);
  // No groups: 0 and 1 mean the same, and the number of used ones means nothing.
  for (const double groups : {0.0, 1.0}) {
    CHECK(refusal([=](Checkpoint& c) {
            c.number("expert_group_count", groups);
            c.number("expert_group_used_count", 0);
          }) == "accepted");
  }
}
