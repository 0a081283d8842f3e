// Row operations: every instruction set gives the bits of the scalar one, and the scalar one is
// what the formula says, to a bound derived from the roundings it makes.
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/kernels/row_ops.hpp"

using namespace tenon;
using weights::normal;
using weights::same_bits;
using weights::supported_isas;

namespace {

constexpr double epsilon = 0x1p-24;  // largest relative error of one rounding
const Dim lengths[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 172, 1000};

// Values that break careless code, in front of ordinary ones.
std::vector<float> adversarial(Dim n, unsigned seed) {
  std::vector<float> x = normal(n, seed);
  const float odd[] = {0.0f, -0.0f, 1e-42f, -1e-40f, 3e4f, -3e4f};
  for (std::size_t i = 0; i < x.size() && i < std::size(odd); ++i) x[i] = odd[i];
  return x;
}

}  // namespace

TEST_CASE("rms_norm", "[twins]") {
  for (const Dim n : lengths) {
    const std::vector<float> x = adversarial(n, static_cast<unsigned>(n)), gain = normal(n, 99);
    double mean = 0;
    for (const float v : x)
      mean += static_cast<double>(v) * static_cast<double>(v) / static_cast<double>(n);
    const double scale = 1 / std::sqrt(mean + static_cast<double>(1e-5f));
    std::vector<float> scalar(x.size());
    row_ops(Isa::scalar).rms_norm(x.data(), gain.data(), n, 1e-5f, scalar.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = static_cast<double>(x[i]) * scale * static_cast<double>(gain[i]);
      // n/16 + 4 sums, mean, root, reciprocal and two products; half of it passes the root.
      const double allowed = (static_cast<double>(n) / 32 + 8) * epsilon * std::fabs(exact);
      CHECK(std::fabs(static_cast<double>(scalar[i]) - exact) <= allowed + 1e-44);
    }
    for (const Isa isa : supported_isas()) {
      std::vector<float> y(x.size()), in_place = x;
      row_ops(isa).rms_norm(x.data(), gain.data(), n, 1e-5f, y.data());
      row_ops(isa).rms_norm(in_place.data(), gain.data(), n, 1e-5f, in_place.data());
      INFO(name_of(isa) << " " << n);
      CHECK(same_bits(y, scalar));
      CHECK(same_bits(in_place, scalar));
    }
  }
}

TEST_CASE("silu_gate and add_to, and nothing beyond the row is touched", "[twins]") {
  for (const Dim n : lengths) {
    const std::vector<float> gate = adversarial(n, 3), up = normal(n, 4);
    std::vector<float> scalar = gate, sum = gate;
    row_ops(Isa::scalar).silu_gate(scalar.data(), up.data(), n);
    row_ops(Isa::scalar).add_to(up.data(), n, sum.data());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = static_cast<double>(gate[i]);
      const double exact = g / (1 + std::exp(-g)) * static_cast<double>(up[i]);
      // e^x to 2 ulp, a sum, a quotient, a product; beyond its range e^x is held at e^88.
      const double held = std::fabs(g) * std::exp(-87.9) * std::fabs(static_cast<double>(up[i]));
      CHECK(std::fabs(static_cast<double>(scalar[i]) - exact) <=
            8 * epsilon * std::fabs(exact) + held + 1e-44);
      CHECK(sum[i] == gate[i] + up[i]);
    }
    for (const Isa isa : supported_isas()) {
      std::vector<float> y = gate, z = gate;
      y.push_back(-7);
      z.push_back(-7);
      row_ops(isa).silu_gate(y.data(), up.data(), n);
      row_ops(isa).add_to(up.data(), n, z.data());
      INFO(name_of(isa) << " " << n);
      CHECK(y.back() == -7);
      CHECK(z.back() == -7);
      y.pop_back();
      z.pop_back();
      CHECK(same_bits(y, scalar));
      CHECK(same_bits(z, sum));
    }
  }
}

TEST_CASE("add_scaled, gelu_gate and clamped_swiglu_gate", "[twins]") {
  for (const Dim n : lengths) {
    std::vector<float> gate = adversarial(n, 7), up = normal(n, 8, 5.0f);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= i % 3 == 0 ? 4.0f : 1.0f;
    std::vector<float> gelu = gate, clamped = gate, sum = gate;
    row_ops(Isa::scalar).gelu_gate(gelu.data(), up.data(), n);
    row_ops(Isa::scalar).clamped_swiglu_gate(clamped.data(), up.data(), n);
    row_ops(Isa::scalar).add_scaled(up.data(), 0.37f, n, sum.data());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = static_cast<double>(gate[i]), u = static_cast<double>(up[i]);
      CHECK(sum[i] == std::fma(up[i], 0.37f, gate[i]));
      // e^z to 2 ulp, and z to 4 ulp of its own, of which e^z sees |z| times as much; then a sum, a
      // quotient and two products. Beyond its range e^z is held at e^88.
      const auto check = [&](float got, double x, double z, double factor) {
        const double exact = x / (1 + std::exp(-z)) * factor;
        const double allowed = (8 + 4 * (std::min)(std::fabs(z), 88.0)) * epsilon;
        const double held = std::fabs(x * factor) * std::exp(-87.9);
        CHECK(std::fabs(static_cast<double>(got) - exact) <=
              allowed * std::fabs(exact) + held + 1e-44);
      };
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (g + 0.044715 * g * g * g);
      check(gelu[i], g, 2 * inner, u);
      CHECK(g * (1 + std::tanh(inner)) / 2 ==
            Approx(g / (1 + std::exp(-2 * inner))).epsilon(1e-12).margin(1e-14));
      const double most = (std::min)(g, 7.0);
      check(clamped[i], most, 1.702 * most, (std::max)((std::min)(u, 7.0), -7.0) + 1);
    }
    for (const Isa isa : supported_isas()) {
      std::vector<float> a = gate, b = gate, c = gate;
      for (std::vector<float>* y : {&a, &b, &c}) y->push_back(-7);
      row_ops(isa).gelu_gate(a.data(), up.data(), n);
      row_ops(isa).clamped_swiglu_gate(b.data(), up.data(), n);
      row_ops(isa).add_scaled(up.data(), 0.37f, n, c.data());
      INFO(name_of(isa) << " " << n);
      for (std::vector<float>* y : {&a, &b, &c}) {
        CHECK(y->back() == -7);
        y->pop_back();
      }
      CHECK(same_bits(a, gelu));
      CHECK(same_bits(b, clamped));
      CHECK(same_bits(c, sum));
    }
  }
}

TEST_CASE("rotations turn pairs, keep lengths, and leave the rest of the head", "[twins]") {
  for (const auto& sizes :
       {std::pair<Dim, Dim>{8, 8}, {16, 16}, {40, 40}, {64, 32}, {80, 80}, {128, 128}, {6, 2}}) {
    const Dim head_dim = sizes.first, rope_dim = sizes.second;
    constexpr Dim heads = 3;
    const std::vector<float> x = normal(heads * head_dim, 5);
    for (const bool halves : {false, true}) {
      std::vector<float> cosines(static_cast<std::size_t>(rope_dim)), sines = cosines;
      const auto partner = [&](Dim i) { return halves ? (i + rope_dim / 2) % rope_dim : i ^ 1; };
      const auto first = [&](Dim i) { return halves ? i < rope_dim / 2 : i % 2 == 0; };
      for (Dim i = 0; i < rope_dim; ++i) {
        const double angle = 0.3 * static_cast<double>(1 + (first(i) ? i : partner(i)));
        cosines[static_cast<std::size_t>(i)] = static_cast<float>(std::cos(angle));
        sines[static_cast<std::size_t>(i)] =
            static_cast<float>((first(i) ? -1 : 1) * std::sin(angle));
      }
      const auto turn = [&](Isa isa, std::vector<float> y) {
        const RowOps& ops = row_ops(isa);
        (halves ? ops.rotate_halves : ops.rotate_interleaved)(y.data(), heads, head_dim, rope_dim,
                                                              cosines.data(), sines.data());
        return y;
      };
      const std::vector<float> scalar = turn(Isa::scalar, x);
      for (Dim h = 0; h < heads; ++h) {
        for (Dim i = 0; i < head_dim; ++i) {
          const auto at = [&](Dim k) { return x[static_cast<std::size_t>(h * head_dim + k)]; };
          const float got = scalar[static_cast<std::size_t>(h * head_dim + i)];
          if (i >= rope_dim) {
            CHECK(got == at(i));
          } else {
            const auto k = static_cast<std::size_t>(i);
            CHECK(got == std::fma(at(i), cosines[k], at(partner(i)) * sines[k]));
          }
        }
      }
      for (const Isa isa : supported_isas()) {
        INFO(name_of(isa) << " head " << head_dim << " rope " << rope_dim
                          << (halves ? " halves" : " interleaved"));
        CHECK(same_bits(turn(isa, x), scalar));
      }
    }
  }
}

TEST_CASE("conversions between rows of floats, halves and bytes", "[twins]") {
  for (const Dim n : lengths) {
    const auto size = static_cast<std::size_t>(n);
    const std::vector<float> x = adversarial(n, 6);
    std::vector<std::uint16_t> halves(size);
    std::vector<std::int8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
      halves[i] = half_of_float(x[i]);
      bytes[i] = static_cast<std::int8_t>(static_cast<int>(i * 37) % 256 - 128);
    }
    for (const Isa isa : supported_isas()) {
      std::vector<std::uint16_t> narrow(size);
      std::vector<float> wide(size), brain(size), scaled(size);
      row_ops(isa).narrow_to_half(x.data(), n, narrow.data());
      row_ops(isa).widen_half(halves.data(), n, wide.data());
      row_ops(isa).widen_bf16(halves.data(), n, brain.data());
      row_ops(isa).widen_bytes(bytes.data(), n, 0.37f, scaled.data());
      INFO(name_of(isa) << " " << n);
      CHECK(narrow == halves);
      for (std::size_t i = 0; i < size; ++i) {
        CHECK(std::bit_cast<std::uint32_t>(wide[i]) ==
              std::bit_cast<std::uint32_t>(float_of_half(halves[i])));
        CHECK(std::bit_cast<std::uint32_t>(brain[i]) == std::uint32_t{halves[i]} << 16);
        CHECK(scaled[i] == static_cast<float>(bytes[i]) * 0.37f);
      }
    }
  }
}
