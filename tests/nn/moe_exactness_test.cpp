// Mixtures of experts: what must hold exactly, whatever the batch, the order or the threads.
#include <cmath>
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "nn/moe_layers.hpp"
#include "tenon/core/thread_team.hpp"

using namespace moe_layers;

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

TEST_CASE("moe: one expert for all, and adding to what is there", "[nn]") {
  Sizes s;
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
