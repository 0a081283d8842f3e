// Mixtures of experts: which experts a token goes to, and with what weights.
#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "nn/moe_layers.hpp"

using namespace moe_layers;

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
