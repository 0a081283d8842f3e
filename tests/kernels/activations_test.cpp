// Activations as int8: 32 values share a scale, a block with a NaN or infinity becomes NaN.
#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace weights;

namespace {

struct Row {
  std::vector<std::int8_t> values;
  std::vector<float> scales;
  std::vector<std::int32_t> sums, heads;
};
Row quantize(Isa isa, const std::vector<float>& x) {
  const auto blocks = static_cast<std::size_t>(ceil_div(static_cast<Dim>(x.size()), 32));
  Row row{std::vector<std::int8_t>(blocks * 32, 99), std::vector<float>(blocks),
          std::vector<std::int32_t>(blocks), std::vector<std::int32_t>(blocks)};
  const QuantizedGroup to{row.values.data(), row.scales.data(), row.sums.data(), row.heads.data(),
                          1};
  quantize_row(isa)(x.data(), static_cast<Dim>(x.size()), to, 0);
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
    CHECK(row.heads[0] == -127 + 2 - 2 + 126);
    CHECK(row.heads[1] == 0);
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
      CHECK(row.heads == expected.heads);
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
  CHECK(empty.all.values == nullptr);
  CHECK(empty.from(2).all.values == nullptr);
  Workspace real(measure.peak());
  std::byte* memory = real.take<std::byte>(QuantizedRows::bytes(3, 100));
  const QuantizedRows rows = QuantizedRows::carve(memory, 3, 100);
  CHECK(rows.blocks == 4);
  const auto* end = memory + measure.peak();
  constexpr Dim entries = 3 * 4 + QuantizedRows::slack;
  CHECK(reinterpret_cast<std::byte*>(rows.all.values + entries * 32) <= end);
  CHECK(reinterpret_cast<std::byte*>(rows.all.scales + entries) <=
        reinterpret_cast<std::byte*>(rows.all.sums));
  CHECK(rows.all.sums + entries <= rows.all.heads);
  CHECK(reinterpret_cast<std::byte*>(rows.all.heads + entries) <=
        reinterpret_cast<std::byte*>(rows.all.values));
  CHECK(rows.from(2).all.scales == rows.all.scales + 8);
}

TEST_CASE("activations: a block of a group holds its tokens side by side", "[kernels]") {
  constexpr Dim tokens = 19, in = 80;  // a group of 16 and one of 3; blocks of 32, 32 and 16
  const std::vector<float> x = normal(tokens * in, 4);
  for (const Isa isa : supported_isas()) {
    Workspace work(static_cast<std::size_t>(QuantizedRows::bytes(tokens, in)));
    const auto rows =
        QuantizedRows::carve(work.take<std::byte>(QuantizedRows::bytes(tokens, in)), tokens, in);
    detail::quantize_rows(quantize_row(isa), matrix(x.data(), tokens, in), rows, 0, tokens,
                          {0, tokens});
    for (Dim t = 0; t < tokens; ++t) {
      const Row alone = quantize(isa, {x.begin() + t * in, x.begin() + (t + 1) * in});
      const QuantizedGroup group = rows.group(t / 16 * 16, t < 16 ? 16 : 3).from_token(t % 16);
      for (Dim b = 0; b < 3; ++b) {
        const auto i = static_cast<std::size_t>(b);
        const QuantizedGroup at = group.from_block(b);
        CHECK(*at.scales == alone.scales[i]);
        CHECK(*at.sums == alone.sums[i]);
        CHECK(*at.heads == alone.heads[i]);
        CHECK(std::equal(at.values, at.values + 32, alone.values.begin() + 32 * b));
      }
    }
  }
}
