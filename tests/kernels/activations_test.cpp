// Activations as int8: 32 values share a scale, a block with a NaN or infinity becomes NaN.
#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace weights;

namespace {

struct Row {
  std::vector<std::int8_t> values;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
};
Row quantize(Isa isa, const std::vector<float>& x) {
  const auto blocks = static_cast<std::size_t>(ceil_div(static_cast<Dim>(x.size()), 32));
  Row row{std::vector<std::int8_t>(blocks * 32, 99), std::vector<float>(blocks),
          std::vector<std::int32_t>(blocks)};
  quantize_row(isa)(x.data(), static_cast<Dim>(x.size()), row.values.data(), row.scales.data(),
                    row.sums.data());
  return row;
}

}  // namespace

TEST_CASE("activations: scale, rounding and sum", "[kernels]") {
  std::vector<float> x(64, 0.0f);
  x[0] = -127.0f;  // the scale of the first block is exactly 1
  x[1] = 0.5f;     // ties go to the even integer
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[4] = 126.49f;
  x[32 + 31] = 0.25f;  // the only value of its block
  for (const Isa isa : supported_isas()) {
    const Row row = quantize(isa, x);
    CHECK(row.scales[0] == 1.0f);
    CHECK(row.values[0] == -127);
    CHECK(row.values[1] == 0);
    CHECK(row.values[2] == 2);
    CHECK(row.values[3] == -2);
    CHECK(row.values[4] == 126);
    CHECK(row.sums[0] == -127 + 2 - 2 + 126);
    CHECK(row.scales[1] == 0.25f / 127.0f);
    CHECK(row.values[63] == 127);
    CHECK(row.sums[1] == 127);
  }
}

TEST_CASE("activations: every instruction set gives the same row, any length", "[kernels]") {
  for (const Dim n : {1, 15, 16, 17, 31, 32, 33, 48, 49, 172, 1000}) {
    const std::vector<float> x = normal(n, static_cast<unsigned>(n), 100.0f);
    const Row expected = quantize(Isa::scalar, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float d = expected.scales[i / 32];
      CHECK(std::fabs(x[i] - d * static_cast<float>(expected.values[i])) <= 0.5001f * d);
    }
    for (std::size_t i = x.size(); i < expected.values.size(); ++i) CHECK(expected.values[i] == 0);
    for (const Isa isa : supported_isas()) {
      const Row row = quantize(isa, x);
      CHECK(row.values == expected.values);
      CHECK(same_bits(row.scales, expected.scales));
      CHECK(row.sums == expected.sums);
    }
  }
}

TEST_CASE("activations: zero, tiny, huge and broken blocks", "[kernels]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : supported_isas()) {
    for (const float quiet : {0.0f, -0.0f, 1e-45f, -1e-40f, 1e-30f}) {
      std::vector<float> x(32, quiet);
      const Row row = quantize(isa, x);
      CHECK(row.scales[0] == 0.0f);
      CHECK(row.sums[0] == 0);
      CHECK(row.values == std::vector<std::int8_t>(32, 0));
    }
    for (const float loud : {0x1p-96f, 1e-20f, 3.4e38f, -3.4e38f}) {
      std::vector<float> x(32, loud);
      const Row row = quantize(isa, x);
      CHECK(row.scales[0] == std::fabs(loud) / 127.0f);
      CHECK(row.values[31] == (loud > 0 ? 127 : -127));
    }
    for (const float broken : {inf, -inf, nan}) {
      for (const std::size_t at : {0u, 15u, 16u, 31u}) {
        std::vector<float> x(64, 1.0f);
        x[at] = broken;
        const Row row = quantize(isa, x);
        CHECK(row.scales[0] != row.scales[0]);
        CHECK(row.sums[0] == 0);
        CHECK(row.values[at] == 0);
        CHECK(row.scales[1] == 1.0f / 127.0f);
      }
    }
  }
}

TEST_CASE("activations: a measuring workspace gives an empty view", "[kernels]") {
  Workspace measure;
  std::byte* none = measure.take<std::byte>(QuantizedRows::bytes(3, 100));
  const QuantizedRows empty = QuantizedRows::carve(none, 3, 100);
  CHECK(empty.values == nullptr);
  Workspace real(measure.peak());
  std::byte* memory = real.take<std::byte>(QuantizedRows::bytes(3, 100));
  const QuantizedRows rows = QuantizedRows::carve(memory, 3, 100);
  CHECK(rows.blocks == 4);
  const auto* end = memory + measure.peak();
  CHECK(reinterpret_cast<std::byte*>(rows.values + 3 * 4 * 32) <= end);
  CHECK(rows.at(2, 1).scales == rows.scales + 9);
}
