// Rotations and position policies against the formulas of their papers in double.
#include "tenon/nn/rope.hpp"

#include <limits>
#include <map>

#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace tenon;
using Catch::Matchers::Contains;
using weights::normal;

namespace {

constexpr double unit = 0x1p-24;  // half a unit in the last place of a float

// Sines and cosines of one row.
struct Angles {
  std::vector<float> cosines, sines;
  RotaryAngles view;
  explicit Angles(const RotaryFrequencies& f)
      : cosines(static_cast<std::size_t>(f.rope_dim())), sines(cosines.size()) {
    view = {f.pairing, f.rope_dim(), matrix(cosines.data(), 1, f.rope_dim()),
            matrix(sines.data(), 1, f.rope_dim())};
  }
};
std::vector<float> turned(const RotaryFrequencies& f, int position, std::vector<float> x,
                          Dim heads) {
  Angles angles(f);
  fill_angles(f, {&position, 1}, angles.view);
  rotate(row_ops(choose_isa()), angles.view, 0, x.data(), heads,
         static_cast<Dim>(x.size()) / heads);
  return x;
}
std::vector<float> shifted(const RotaryFrequencies& f, int delta, std::vector<float> x, Dim heads) {
  Angles angles(f);
  fill_shift_angles(f, delta, angles.view);
  rotate(row_ops(choose_isa()), angles.view, 0, x.data(), heads,
         static_cast<Dim>(x.size()) / heads);
  return x;
}

struct Config {
  std::vector<ConfigEntry> entries;
  ModelConfig view() const { return {"model", entries}; }
};
ConfigEntry number(std::string_view key, double value) {
  return {key, value};
}
ConfigEntry text(std::string_view key, std::string_view value) {
  return {key, 0, {}, value};
}
template <class P>
P policy(std::vector<ConfigEntry> entries) {
  const Config config{std::move(entries)};
  return P::read(config.view(), 0);
}
template <class P>
std::string refusal(std::vector<ConfigEntry> entries) {
  try {
    policy<P>(std::move(entries));
  } catch (const LoadError& error) {
    return error.what();
  }
  return "read";
}

// A checkpoint's vectors, as a binding visitor sees them.
struct Tensors {
  std::map<std::string, std::vector<float>, std::less<>> vectors;
  std::vector<RotaryFrequencies> rotaries;

  void vector(std::string_view name, std::vector<float>& to, Axis n) {
    REQUIRE(vectors.count(name) == 1);
    to = vectors.find(name)->second;
    REQUIRE(static_cast<Dim>(to.size()) == n.size);
  }
  void optional_vector(std::string_view name, std::vector<float>& to, Axis n) {
    if (vectors.count(name) == 1) vector(name, to, n);
  }
  int rotary(RotaryFrequencies f) {
    rotaries.push_back(std::move(f));
    return static_cast<int>(rotaries.size()) - 1;
  }
};

}  // namespace

TEST_CASE("a rotation turns each pair by position x base^(-2i / rope_dim), the rest stays",
          "[rotary]") {
  const Dim heads = 3, head_dim = 40, rope_dim = 24;
  const Rope rope{.base = 5000, .factor = 2, .rope_dim = rope_dim};
  const auto x = normal(heads * head_dim, 1);
  for (const int position : {0, 1, 77, 100000}) {
    const auto y = turned(rope.frequencies(head_dim, {}), position, x, heads);
    for (Dim h = 0; h < heads; ++h) {
      for (Dim i = 0; i < head_dim; ++i) {
        const auto at = static_cast<std::size_t>(h * head_dim + i);
        if (i >= rope_dim || position == 0) {
          CHECK(y[at] == x[at]);
          continue;
        }
        const std::size_t even = at - static_cast<std::size_t>(i % 2);
        const double angle =
            position / 2.0 * std::pow(5000.0, -static_cast<double>(i - i % 2) / rope_dim);
        const double a = static_cast<double>(x[even]), b = static_cast<double>(x[even + 1]);
        const double want = i % 2 == 0 ? a * std::cos(angle) - b * std::sin(angle)
                                       : a * std::sin(angle) + b * std::cos(angle);
        // Sine and cosine rounded once each, one product and one fma: 4 roundings.
        CHECK(std::fabs(static_cast<double>(y[at]) - want) <= 4 * unit * std::hypot(a, b));
      }
    }
  }
}

TEST_CASE("halves are interleaved pairs in another order, bit for bit", "[rotary]") {
  const Dim head_dim = 40, rope_dim = 32;
  const auto x = normal(head_dim, 2);
  auto permuted = x;
  for (std::size_t i = 0; i < 16; ++i) {
    permuted[i] = x[2 * i];
    permuted[16 + i] = x[2 * i + 1];
  }
  const auto pairs = turned(Rope{.rope_dim = rope_dim}.frequencies(head_dim, {}), 91, x, 1);
  const auto halves =
      turned(RopeHalves{.rope_dim = rope_dim}.frequencies(head_dim, {}), 91, permuted, 1);
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(halves[i] == pairs[2 * i]);
    CHECK(halves[16 + i] == pairs[2 * i + 1]);
  }
  for (std::size_t i = 32; i < 40; ++i) CHECK(halves[i] == x[i]);
}

TEST_CASE("a rotated row moved by a difference is the row rotated there", "[rotary]") {
  RopeHalves yarn{.base = 10000, .factor = 32, .rope_dim = 32};
  yarn.yarn = {.used = true, .original_context = 128};
  const RotaryFrequencies plain = Rope{}.frequencies(32, {}), scaled = yarn.frequencies(32, {});
  REQUIRE(scaled.magnitude > 1.3);
  const auto x = normal(64, 3);
  for (const RotaryFrequencies& f : {plain, scaled}) {
    for (const auto& [position, delta] :
         {std::pair{7, 5}, std::pair{4096, -4000}, std::pair{30000, -1}, std::pair{12, -12}}) {
      const auto there = turned(f, position + delta, x, 2);
      const auto moved = shifted(f, delta, turned(f, position, x, 2), 2);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t head = i / 32 * 32, at = i % 32;
        const bool pairs = f.pairing == Pairing::interleaved;
        const std::size_t partner = pairs ? at ^ 1 : (at + 16) % 32;
        const double length = f.magnitude * std::hypot(static_cast<double>(x[head + at]),
                                                       static_cast<double>(x[head + partner]));
        // Three rotations of 4 roundings each, two of them on vectors that a rounding moved.
        CHECK(std::fabs(static_cast<double>(there[i]) - static_cast<double>(moved[i])) <=
              13 * unit * length);
      }
    }
  }
}

TEST_CASE("YaRN keeps what turns often, divides what turns seldom, blends between", "[rotary]") {
  // 64 values, base 150000, 4096 tokens: 32 turns fall on pair 64 ln(4096 / 64 pi) / 2 ln(150000)
  // = 8.09, one turn on 17.40; rounded outwards the ramp goes from 8 to 18.
  const auto rope = policy<RopeHalves>(
      {number("rope.freq_base", 150000), number("rope.dimension_count", 64),
       text("rope.scaling.type", "yarn"), number("rope.scaling.factor", 32),
       number("rope.scaling.original_context_length", 4096), number("context_length", 131072)});
  const RotaryFrequencies f = rope.frequencies(64, {});
  REQUIRE(f.radians.size() == 32);
  for (int i = 0; i < 32; ++i) {
    const double plain = std::pow(150000.0, -i / 32.0);
    const double divided = i <= 8 ? 0 : i >= 18 ? 1 : (i - 8) / 10.0;
    const double want = plain * (1 - divided) + plain / 32 * divided;
    CHECK(f.radians[static_cast<std::size_t>(i)] == Approx(want).epsilon(1e-13));
  }
  CHECK(f.radians[8] == std::pow(150000.0, -16.0 / 64));
  CHECK(f.radians[18] == std::pow(150000.0, -36.0 / 64) / 32);
  CHECK(f.radians[13] == Approx(std::pow(150000.0, -26.0 / 64) * 33 / 64).epsilon(1e-13));

  // Without rounding, as gpt-oss is trained, the ramp goes from 8.09 to 17.40.
  const auto exact = policy<RopeHalves>(
      {number("rope.freq_base", 150000), number("rope.dimension_count", 64),
       text("rope.scaling.type", "yarn"), number("rope.scaling.factor", 32),
       number("rope.scaling.original_context_length", 4096), number("context_length", 131072),
       ConfigEntry{"rope.scaling.yarn_truncate", 0, {}, {}, true}});
  const RotaryFrequencies e = exact.frequencies(64, {});
  const auto pair_of = [](double turns) {
    return 64 * std::log(4096 / (turns * 2 * 3.14159265358979323846)) / (2 * std::log(150000.0));
  };
  CHECK(e.radians[8] == f.radians[8]);
  CHECK(e.radians[18] == f.radians[18]);
  for (int i = 9; i < 18; ++i) {
    const double divided = (std::min)(1.0, (i - pair_of(32)) / (pair_of(1) - pair_of(32)));
    const double want = std::pow(150000.0, -i / 32.0) * (1 - divided + divided / 32);
    CHECK(e.radians[static_cast<std::size_t>(i)] == Approx(want).epsilon(1e-13));
    CHECK(e.radians[static_cast<std::size_t>(i)] != f.radians[static_cast<std::size_t>(i)]);
  }

  // Other ends: 8 turns on 64 ln(4096 / 16 pi) / 2 ln(150000) = 11.82, 2 turns on 15.54.
  RopeHalves narrow = rope;
  narrow.yarn.beta_fast = 8;
  narrow.yarn.beta_slow = 2;
  const RotaryFrequencies g = narrow.frequencies(64, {});
  CHECK(g.radians[11] == std::pow(150000.0, -22.0 / 64));
  CHECK(g.radians[12] == Approx(std::pow(150000.0, -24.0 / 64) * (0.8 + 0.2 / 32)).epsilon(1e-13));
  CHECK(g.radians[16] == std::pow(150000.0, -32.0 / 64) / 32);

  // A context so short that every pair turns less than once: all are divided; ends clamp.
  RopeHalves brief = rope;
  brief.yarn.original_context = 2;
  const RotaryFrequencies h = brief.frequencies(64, {});
  for (std::size_t i = 1; i < 32; ++i) {
    CHECK(h.radians[i] == std::pow(150000.0, -static_cast<double>(i) / 32) / 32);
  }
}

TEST_CASE("YaRN's temperature is applied once, where the model wants it", "[rotary]") {
  const auto keys = [](double factor, double log_multiplier, double attn_factor) {
    return std::vector<ConfigEntry>{text("rope.scaling.type", "yarn"),
                                    number("rope.scaling.factor", factor),
                                    number("rope.scaling.original_context_length", 32),
                                    number("rope.scaling.yarn_log_multiplier", log_multiplier),
                                    number("rope.scaling.attn_factor", attn_factor)};
  };
  const double m = 0.1 * std::log(32.0) + 1;
  // On sines and cosines: gpt-oss; then a file whose quotient of two equal terms is 1.
  CHECK(policy<Rope>(keys(32, 0, 1)).frequencies(16, {}).magnitude == Approx(m).epsilon(1e-14));
  CHECK(policy<Rope>(keys(32, 0, 0.5)).frequencies(16, {}).magnitude ==
        Approx(m / 2).epsilon(1e-14));
  CHECK(policy<Rope>(keys(32, 1, 1)).frequencies(16, {}).magnitude == 1);
  CHECK(policy<Rope>(keys(1, 0, 1)).frequencies(16, {}).magnitude == 1);
  CHECK(logit_scale_of(policy<Rope>(keys(32, 0, 1))) == 1);
  // On the logits: DeepSeek-V3 (0.1 x 1) and V2-Lite (0.1 x 0.707).
  const auto v3 = policy<Yarn>(keys(40, 0.1, 1)), v2 = policy<Yarn>(keys(40, 0.0707, 1));
  CHECK(v3.frequencies(64, {}).magnitude == 1);
  CHECK(v2.frequencies(64, {}).magnitude == 1);
  CHECK(logit_scale_of(v3) == Approx(1.8738542).epsilon(1e-6));  // (0.1 ln 40 + 1)^2
  CHECK(logit_scale_of(v2) == Approx(1.5896268).epsilon(1e-6));  // (0.0707 ln 40 + 1)^2
  CHECK(logit_scale_of(policy<Yarn>(keys(40, 0, 1))) == 1);
  CHECK(policy<Yarn>(keys(40, 0, 1)).frequencies(64, {}).magnitude ==
        Approx(0.1 * std::log(40.0) + 1).epsilon(1e-14));
  // Without YaRN a policy of either kind leaves both alone.
  CHECK(logit_scale_of(policy<Yarn>({})) == 1);
  CHECK(policy<Yarn>({}).frequencies(64, {}).magnitude == 1);
}

TEST_CASE("divisors come from the tensor a policy names", "[rotary]") {
  const float never = 1e30f;
  Tensors tensors{{{"/rope_freqs.weight", {1, 2, 4, never}},
                   {"/rope_factors_short.weight", {1, 1, 1, 2}},
                   {"/rope_factors_long.weight", {3, 3, 3, 8}}},
                  {}};
  const auto bound = [&](const auto& position) {
    return tensors.rotaries[static_cast<std::size_t>(bind_rotary(tensors, position, 8))].radians;
  };
  const auto plain = Rope{}.frequencies(8, {}).radians;
  const auto turned_less = bound(Rope{});
  CHECK(turned_less[1] == plain[1] / 2);
  CHECK(turned_less[2] == plain[2] / 4);
  // "Proportional" rotation: what has a huge divisor does not turn, wherever it stands.
  const auto x = normal(8, 4);
  const auto y = turned(tensors.rotaries[0], 1 << 20, x, 1);
  CHECK(y[6] == x[6]);
  CHECK(y[7] == x[7]);
  CHECK(y[4] != x[4]);
  CHECK(bound(LocalRope{}) == plain);

  const std::vector<ConfigEntry> longer{number("context_length", 131072),
                                        number("rope.scaling.original_context_length", 4096),
                                        number("rope.scaling.attn_factor", 1.19)};
  const auto beyond = policy<LongRopeHalves>(longer);
  CHECK(bound(beyond)[3] == plain[3] / 8);
  CHECK(beyond.frequencies(8, {}).magnitude == 1.19);
  using Within = LongRopeOf<Pairing::halves, LongRopeList::within>;
  CHECK(bound(policy<Within>(longer))[3] == plain[3] / 2);
  CHECK(bound(policy<LongRopeHalves>({number("context_length", 4096),
                                      number("rope.scaling.original_context_length", 4096)}))[3] ==
        plain[3] / 2);

  Rope linear{.factor = 4};
  CHECK_THROWS_WITH(bound(linear), Contains("rope_freqs.weight") && Contains("it is 4"));
  tensors.vectors["/rope_freqs.weight"][2] = 0;
  CHECK_THROWS_WITH(bound(Rope{}), Contains("number 2 is 0"));
}

TEST_CASE("policies read their own keys and refuse what they do not do", "[rotary]") {
  const auto local =
      policy<LocalRope>({number("rope.freq_base", 1e6), number("rope.dimension_count", 32),
                         number("rope.dimension_count_swa", 16),
                         text("rope.scaling.type", "linear"), number("rope.scaling.factor", 8)});
  CHECK(local.base == 10000);
  CHECK(local.rope_dim == 16);
  CHECK(policy<LocalRope>({number("rope.freq_base_swa", 500)}).base == 500);
  CHECK(policy<LocalRope>({number("rope.dimension_count", 24)}).rope_dim == 24);
  CHECK(policy<Rope>({number("rope.scaling.factor", 8)}).factor == 8);  // no type: linear
  CHECK(policy<Rope>({text("rope.scaling.type", "linear"), number("rope.scaling.factor", 8)})
            .frequencies(4, {})
            .radians[0] == 0.125);

  CHECK_THAT(refusal<Rope>({text("rope.scaling.type", "longrope")}),
             Contains("it is \"longrope\"") && Contains("position policy"));
  CHECK_THAT(refusal<LongRope>({text("rope.scaling.type", "yarn")}), Contains("it is \"yarn\""));
  CHECK_THAT(refusal<Rope>({text("rope.scaling.type", "yarn")}),
             Contains("rope.scaling.factor\" is missing"));
  const auto yarn = [](std::string_view key, double value) {
    return std::vector<ConfigEntry>{number(key, value), text("rope.scaling.type", "yarn"),
                                    number("rope.scaling.factor", 2), number("context_length", 64)};
  };
  CHECK(refusal<Rope>(yarn("unrelated", 0)) == "read");
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto& [key, value] :
       {std::pair{"rope.freq_base", 1.0}, std::pair{"rope.scaling.yarn_beta_fast", 0.0},
        std::pair{"rope.scaling.yarn_beta_slow", -1.0},
        std::pair{"rope.scaling.yarn_log_multiplier", infinite},
        std::pair{"rope.scaling.attn_factor", 0.0},
        std::pair{"rope.scaling.original_context_length", 0.5}}) {
    CHECK_THAT(refusal<Rope>(yarn(key, value)), Contains(key));
  }
  CHECK_THROWS_AS(Rope{.rope_dim = 7}.frequencies(16, {}), ShapeError);
  CHECK_THROWS_AS(Rope{.rope_dim = 18}.frequencies(16, {}), ShapeError);
  CHECK_THROWS_AS(LocalRope{.rope_dim = 18}.frequencies(16, {}), ShapeError);
}
