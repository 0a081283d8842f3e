// Every block format that tenon reads, against the reference's own blocks and on hostile values;
// and encoding under importance.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "quant/patterns.hpp"
#include "quant/safetensors.hpp"
#include "shared_data.hpp"
#include "tenon/quant/gguf_formats.hpp"
#include "tenon/quant/importance.hpp"

using namespace tenon;

namespace {

using Blocks = std::tuple<Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL,
                          IQ4_XS, IQ3_S, Mxfp4, Nvfp4, Q8_1, Q8_K>;
using KQuants = std::tuple<Q2_K, Q3_K, Q4_K, Q5_K, Q6_K>;
using Weighed = std::tuple<Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS>;

// The most that a value may be off where the block's largest magnitude is 1: the widest step
// between neighbouring codes, from the formats' definitions.
template <class F>
constexpr double step() {
  const std::string_view name = F::name;
  if (name == "q8_0" || name == "q8_1" || name == "q8_K") return 1.0 / 127;
  if (name == "q6_K") return 1.0 / 31;
  if (name == "q5_0" || name == "q5_1" || name == "q5_K") return 2.0 / 31;
  if (name == "q4_1" || name == "q4_K") return 2.0 / 15;
  if (name == "q4_0") return 1.0 / 8;
  if (name == "iq4_nl" || name == "iq4_xs") return 24.0 / 113;
  if (name == "mxfp4" || name == "nvfp4") return 2.0 / 6;  // from 4 to 6
  if (name == "q3_K") return 1.0 / 3;
  return 2.0 / 3;  // two bits; and lattice points, which need not be near
}

template <class F>
std::vector<float> round_trip(const std::vector<float>& x, const float* importance = nullptr) {
  const auto n = static_cast<Dim>(x.size());
  std::vector<std::byte> bytes(row_bytes<F>(n));
  if (importance == nullptr) {
    F::encode(x.data(), n, bytes.data());
  } else {
    encode_important<F>(x.data(), n, bytes.data(), importance);
  }
  std::vector<float> y(x.size());
  F::decode(bytes.data(), n, y.data());
  return y;
}
double squared_error(const std::vector<float>& x, const std::vector<float>& y,
                     const std::vector<float>& weights = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += e * e * (weights.empty() ? 1.0 : static_cast<double>(weights[i]));
  }
  return sum;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("every format: the reference's values of its own blocks", "[quant]",
                        Blocks) {
  using F = TestType;
  const auto path = shared_file("models/quant/quant_blocks.safetensors");
  if (path.empty()) return;
  const Tensors tensors(path);
  const std::string name(F::name);
  if (name == "q8_1" || name == "q8_K") return;  // of activations, not in that file
  const auto raw = tensors.get<std::byte>(name + ".raw");
  const auto values = tensors.get<float>(name + ".values");
  REQUIRE(values.size() == 3 * 512);
  std::vector<float> decoded(values.size());
  F::decode(raw.data(), 3 * 512, decoded.data());
  CHECK(decoded == values);
  if (name != "nvfp4") return;
  const auto source = tensors.get<float>("source");
  std::vector<std::byte> encoded(raw.size());
  F::encode(source.data(), 3 * 512, encoded.data());
  CHECK(encoded == raw);
}

TEST_CASE("every format: Q8_1 and Q8_K by hand", "[quant]") {
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 128) - 64;
  x[7] = -127;
  CHECK(round_trip<Q8_K>(x) == x);  // d = 1
  std::vector<std::byte> bytes(row_bytes<Q8_K>(256));
  Q8_K::encode(x.data(), 256, bytes.data());
  std::int16_t sums[16];
  std::memcpy(sums, bytes.data() + 260, 32);
  CHECK(sums[0] == -64 * 16 + 120 - 7 - 63);  // but for x[7], which is -127 instead of -57
  CHECK(sums[1] == -64 * 16 + 120 + 256);
  std::vector<float> y(x.begin(), x.begin() + 32);
  CHECK(round_trip<Q8_1>(y) == y);
  std::vector<std::byte> small(36);
  Q8_1::encode(y.data(), 32, small.data());
  int sum = 0;
  for (const float v : y) sum += static_cast<int>(v);
  CHECK(detail::load_half(small.data()) == 1.0f);
  CHECK(detail::load_half(small.data() + 2) == static_cast<float>(sum));
}

TEMPLATE_LIST_TEST_CASE("every format: quiet, tiny, lonely, constant and alternating values",
                        "[quant]", Blocks) {
  using F = TestType;
  const auto check = [](const std::vector<float>& x, double peak) {
    const auto y = round_trip<F>(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(std::isfinite(y[i]));
      // Half scales below 2^-14 are spaced by 2^-24, which the largest code multiplies.
      REQUIRE(std::fabs(static_cast<double>(y[i]) - static_cast<double>(x[i])) <=
              step<F>() * peak * 1.001 + 0x1p-24 * 128);
    }
  };
  for (const float quiet : {0.0f, -0.0f}) {
    for (const float v : round_trip<F>(std::vector<float>(256, quiet))) REQUIRE(v == 0.0f);
  }
  for (const float tiny : {1e-45f, 1e-38f, -1e-38f, 1.2e-38f, 1e-30f}) {
    check(std::vector<float>(256, tiny), 0);
  }
  for (const float value : {1.0f, -1.0f, 0.3f, 250.0f}) {
    const double peak = std::fabs(static_cast<double>(value));
    check(std::vector<float>(256, value), peak);
    std::vector<float> spike(256), alternating(256);
    spike[77] = value;
    for (std::size_t i = 0; i < 256; ++i) alternating[i] = i % 2 == 0 ? value : -value;
    check(spike, peak);
    check(alternating, peak);
    spike[78] = 1e-38f;
    check(spike, peak);
  }
}

TEMPLATE_LIST_TEST_CASE("every format: K-quants are as good as the reference's", "[quant]",
                        KQuants) {
  using F = TestType;
  const auto path = shared_file("models/quant/quant_blocks.safetensors");
  const auto facts = shared_file("models/quant/quant_blocks.json");
  if (path.empty() || facts.empty()) return;
  std::ifstream file(facts);
  const auto known = nlohmann::json::parse(file);
  const double reference =
      known.at(std::string(F::name)).at("max_row_relative_rms_error_vs_source").get<double>();
  const auto source = Tensors(path).get<float>("source");
  const std::vector<float> alike(512, 1.0f);
  double worst = 0;
  for (std::ptrdiff_t r = 0; r < 3; ++r) {
    const std::vector<float> row(source.begin() + r * 512, source.begin() + (r + 1) * 512);
    const double error = squared_error(row, round_trip<F>(row, alike.data()));
    worst = (std::max)(worst, std::sqrt(error / squared_error(row, std::vector<float>(512))));
  }
  INFO(F::name << ": " << worst << ", the reference has " << reference);
  CHECK(worst <= reference);
}

TEMPLATE_LIST_TEST_CASE("every format: importance moves the error to where it counts less",
                        "[quant]", Weighed) {
  using F = TestType;
  static_assert(weighs_importance<F> && !weighs_importance<Q8_0>);
  const auto x = patterns::values(0, 8192);
  std::vector<float> importance(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) importance[i] = i % 8 == 0 ? 50.0f : 0.1f;
  const auto plain = round_trip<F>(x), weighed = round_trip<F>(x, importance.data());
  CHECK(squared_error(x, weighed, importance) < 0.9 * squared_error(x, plain, importance));
  // The scale of all does not matter, a power of two not even for rounding.
  auto doubled = importance;
  for (float& w : doubled) w *= 64;
  CHECK(round_trip<F>(x, doubled.data()) == weighed);
  for (const float v : round_trip<F>(std::vector<float>(256), importance.data())) {
    REQUIRE(v == 0.0f);
  }
}

TEST_CASE("every format: codes of NVFP4 scales come back", "[quant]") {
  for (int code = 0; code < 256; ++code) {
    const float d = detail::half_e4m3(code);
    CHECK(detail::half_e4m3(detail::code_of_half_e4m3(d)) == d);
    CHECK(float_of_half(half_of_float(d)) == d);
    if (code < 0x78) CHECK(detail::e4m3_code(2 * d) == code);
  }
  CHECK(detail::half_e4m3(0x7f) == 0.0f);
  CHECK(detail::half_e4m3(0x38) == 0.5f);
  CHECK(detail::e4m3_code(-1.0f) == 0);
  CHECK(detail::e4m3_code(1e9f) == 0x7e);
  CHECK(detail::e4m3_code(std::nanf("")) == 0);
}
