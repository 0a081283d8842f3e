// MXFP4 against its specification, its golden block under both tie rules, and hostile blocks.
#include "tenon/quant/mxfp4.hpp"

#include <cstring>
#include <vector>

#include "catch.hpp"

using namespace tenon;

namespace {

using Even = Mxfp4Of<HalfWay::to_even>;

struct Coded {
  std::vector<std::byte> bytes = std::vector<std::byte>(17);
  std::vector<float> values = std::vector<float>(32);
  int exponent() const { return std::to_integer<int>(bytes[0]); }
};
template <class F>
Coded coded(const std::vector<float>& x) {
  Coded out;
  F::encode(x.data(), 32, out.bytes.data());
  F::decode(out.bytes.data(), 32, out.values.data());
  return out;
}

std::vector<float> one_to_32() {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  return x;
}

}  // namespace

TEST_CASE("mxfp4: 1 to 32, and the four values halfway", "[quant]") {
  std::vector<float> even = {0, 0, 4, 4, 4, 8, 8, 8, 8, 8, 12, 12, 12};
  even.resize(20, 16.0f);
  even.resize(27, 24.0f);
  even.resize(32, 32.0f);
  const Coded ocp = coded<Even>(one_to_32());
  CHECK(ocp.exponent() == 130);
  CHECK(ocp.values == even);
  std::vector<float> ggml = even;
  ggml[5] = 4;    // 6 lies between 4 and 8,
  ggml[13] = 12;  // 14 between 12 and 16,
  ggml[19] = 16;  // 20 between 16 and 24,
  ggml[27] = 24;  // 28 between 24 and 32
  CHECK(coded<Mxfp4>(one_to_32()).exponent() == 130);
  CHECK(coded<Mxfp4>(one_to_32()).values == ggml);
  std::vector<float> negative = one_to_32();
  for (float& v : negative) v = -v;
  for (float& v : ggml) v = -v;
  CHECK(coded<Mxfp4>(negative).values == ggml);
}

TEST_CASE("mxfp4: every code under every exponent", "[quant]") {
  const double elements[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int e = 0; e < 256; ++e) {
    std::vector<std::byte> bytes(17);
    bytes[0] = static_cast<std::byte>(e);
    for (int i = 0; i < 16; ++i) {
      bytes[static_cast<std::size_t>(1 + i)] = static_cast<std::byte>(i | (15 - i) << 4);
    }
    std::vector<float> x(32);
    Mxfp4::decode(bytes.data(), 32, x.data());
    std::size_t wrong = 0;
    for (int i = 0; i < 32; ++i) {
      const int code = i < 16 ? i : 31 - i;
      const double exact = (code < 8 ? 1 : -1) * std::ldexp(elements[code & 7], e - 127);
      const float got = x[static_cast<std::size_t>(i)];
      const bool right = e == 255 ? got != got : got == static_cast<float>(exact);
      wrong += right ? 0u : 1u;
    }
    INFO("exponent " << e);
    CHECK(wrong == 0);
  }
}

TEST_CASE("mxfp4: values on the grid come back, whatever the scale", "[quant]") {
  const float elements[] = {6, 0, 0.5f, -1, 1.5f, -2, 3, -4};
  for (int shift = -126; shift <= 125; ++shift) {
    std::vector<float> x(32);
    for (std::size_t i = 0; i < 32; ++i) x[i] = std::ldexp(elements[i % 8], shift);
    INFO("2^" << shift);
    CHECK(coded<Mxfp4>(x).values == x);
    CHECK(coded<Even>(x).values == x);
    CHECK(coded<Mxfp4>(x).exponent() == shift + 127);
  }
}

TEST_CASE("mxfp4: nothing beyond the nearest element, saturation above six", "[quant]") {
  for (int k = 0; k < 64; ++k) {  // peaks from 4 to just below 8
    std::vector<float> x(32);
    const float peak = 4.0f + static_cast<float>(k) / 16;
    x[7] = peak;
    x[31] = -peak;
    const Coded c = coded<Mxfp4>(x);
    CHECK(c.exponent() == 127);
    const float nearest = peak <= 5 ? 4.0f : 6.0f;
    CHECK(c.values[7] == nearest);
    CHECK(c.values[31] == -nearest);
  }
}

TEST_CASE("mxfp4: hostile values", "[quant]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const float quiet : {0.0f, -0.0f}) {
    const Coded c = coded<Mxfp4>(std::vector<float>(32, quiet));
    CHECK(c.bytes == std::vector<std::byte>(17));
    for (const float v : c.values) CHECK(std::signbit(v) == false);
  }
  // A quarter of the smallest scale and less is zero; the smallest scale itself is kept.
  CHECK(coded<Mxfp4>(std::vector<float>(32, 0x1p-129f)).values == std::vector<float>(32, 0.0f));
  CHECK(coded<Mxfp4>(std::vector<float>(32, 0x1p-127f)).values ==
        std::vector<float>(32, 0x1p-127f));
  CHECK(coded<Mxfp4>(std::vector<float>(32, 3e38f)).values ==
        std::vector<float>(32, std::ldexp(6.0f, 125)));
  for (const float loud : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0u, 15u, 16u, 31u}) {
      std::vector<float> x(32, 0.5f);
      x[at] = loud;
      const Coded c = coded<Mxfp4>(x);
      CHECK(c.exponent() == 255);
      for (const float v : c.values) CHECK(v != v);
    }
  }
}
