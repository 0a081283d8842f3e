// The 8-bit floats against tables derived from their definition: sign, exponent, fraction.
#include "tenon/quant/fp8.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"

using namespace tenon;

namespace {

struct Definition {
  int mantissa, bias;
  bool infinity;  // the largest exponent is kept for infinity and NaNs
};
constexpr Definition e4m3{3, 7, false}, e5m2{2, 15, true};

// NaN where the code is one.
double defined(const Definition& d, int code) {
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  const int exponent = (code & 0x7f) >> d.mantissa;
  const int fraction = code & ((1 << d.mantissa) - 1);
  const int top = (1 << (7 - d.mantissa)) - 1;
  if (d.infinity && exponent == top) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (!d.infinity && (code & 0x7f) == 0x7f) return std::nan("");
  const double part = fraction / std::ldexp(1.0, d.mantissa);
  return sign *
         (exponent == 0 ? std::ldexp(part, 1 - d.bias) : std::ldexp(1 + part, exponent - d.bias));
}
template <class F>
float decoded(int code) {
  const auto byte = static_cast<std::byte>(code);
  float value;
  F::decode(&byte, 1, &value);
  return value;
}
template <class F>
int encoded(float value) {
  std::byte byte;
  F::encode(&value, 1, &byte);
  return std::to_integer<int>(byte);
}

template <class F>
void check_all(const Definition& d, int largest) {
  for (int code = 0; code < 256; ++code) {
    INFO(F::name << " code " << code);
    const double expected = defined(d, code);
    const float value = decoded<F>(code);
    if (std::isnan(expected)) {
      CHECK(std::isnan(value));
      continue;
    }
    CHECK(static_cast<double>(value) == expected);
    CHECK(std::signbit(value) == (code >= 128));
    CHECK(encoded<F>(value) == (std::isinf(expected) ? (code & 0x80) | largest : code));
  }
  // Rounding: from each number to the next, the middle and its neighbours.
  for (int code = 0; code < largest; ++code) {
    INFO(F::name << " above code " << code);
    const float low = decoded<F>(code), high = decoded<F>(code + 1);
    const float middle = (low + high) / 2;  // exact
    const int even = code % 2 == 0 ? code : code + 1;
    for (const int sign : {0, 0x80}) {
      const auto of = [&](float x) { return encoded<F>(sign != 0 ? -x : x); };
      CHECK(of(middle) == (sign | even));
      CHECK(of(std::nextafter(middle, 0.0f)) == (sign | code));
      CHECK(of(std::nextafter(middle, high)) == (sign | (code + 1)));
      CHECK(of(std::nextafter(low, high)) == (sign | code));
      CHECK(of(std::nextafter(high, low)) == (sign | (code + 1)));
    }
  }
  const float top = decoded<F>(largest), infinity = std::numeric_limits<float>::infinity();
  for (const float x :
       {top, std::nextafter(top, infinity), top * 1.07f, 2 * top, 1e38f, infinity}) {
    CHECK(encoded<F>(x) == largest);
    CHECK(encoded<F>(-x) == (0x80 | largest));
  }
  CHECK(encoded<F>(std::nanf("")) == 0x7f);
  CHECK(encoded<F>(-std::nanf("1")) == 0x7f);
  CHECK(encoded<F>(1e-45f) == 0);
  CHECK(encoded<F>(-1e-45f) == 0x80);
}

}  // namespace

static_assert(Format<Fp8E4M3> && Format<Fp8E5M2>);

TEST_CASE("E4M3: all codes, all roundings, saturation", "[fp8]") {
  check_all<Fp8E4M3>(e4m3, 0x7e);
  CHECK(decoded<Fp8E4M3>(0x7e) == 448);
  CHECK(decoded<Fp8E4M3>(0x01) == 0x1p-9f);
  CHECK(decoded<Fp8E4M3>(0x08) == 0x1p-6f);
  CHECK(decoded<Fp8E4M3>(0x38) == 1);
  CHECK(encoded<Fp8E4M3>(464) == 0x7e);
}

TEST_CASE("E5M2: all codes, all roundings, saturation", "[fp8]") {
  check_all<Fp8E5M2>(e5m2, 0x7b);
  CHECK(decoded<Fp8E5M2>(0x7b) == 57344);
  CHECK(decoded<Fp8E5M2>(0x01) == 0x1p-16f);
  CHECK(decoded<Fp8E5M2>(0x3c) == 1);
  CHECK(std::isinf(decoded<Fp8E5M2>(0xfc)));
}

TEST_CASE("rows of any part", "[fp8]") {
  float in[37], out[20];
  for (int i = 0; i < 37; ++i) in[i] = static_cast<float>(i - 10) * 0.25f;
  std::byte row[37];
  CHECK(row_bytes<Fp8E4M3>(37) == 37);
  encode_row<Fp8E4M3>(in, 37, row);
  decode_part<Fp8E4M3>(row, 5, 20, out);
  for (int i = 0; i < 20; ++i) CHECK(out[i] == decoded<Fp8E4M3>(encoded<Fp8E4M3>(in[i + 5])));
}
