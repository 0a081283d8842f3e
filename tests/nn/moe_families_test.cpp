// Mixtures of experts: whole layers of every family against a plain model in double.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "nn/moe_layers.hpp"

using namespace moe_layers;

namespace {

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

TEST_CASE("moe: every expert, chosen by every token", "[nn]") {
  Sizes s;
  s.used = s.experts;
  check_family<Mixtral>(s, true, 1);
}
