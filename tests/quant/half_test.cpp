// 16-bit floats: all 65536 of each kind, and every rounding boundary between two of them.
#include "tenon/quant/half.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "catch.hpp"
#include "tenon/kernels/isa.hpp"
#include "tenon/kernels/lanes_avx2.hpp"

using namespace tenon;

namespace {

// The value of a 16-bit float by its definition: sign, `exponent_bits`, the rest of the mantissa.
double value_of(std::uint32_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double significand = mantissa + (exponent == 0 ? 0 : 1 << mantissa_bits);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

struct Kind {
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  int exponent_bits;
  std::uint16_t infinity;
};
constexpr Kind kinds[] = {{float_of_half, half_of_float, 5, 0x7c00},
                          {float_of_bf16, bf16_of_float, 8, 0x7f80}};

}  // namespace

TEST_CASE("half: every 16-bit float widens to its value and narrows back", "[quant]") {
  for (const Kind& kind : kinds) {
    std::size_t wrong = 0;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto stored = static_cast<std::uint16_t>(bits);
      const float wide = kind.widen(stored);
      const double expected = value_of(bits, kind.exponent_bits);
      if (expected != expected) {
        const float again = kind.widen(kind.narrow(wide));
        wrong +=
            wide != wide && again != again && std::signbit(again) == std::signbit(wide) ? 0u : 1u;
      } else {
        const bool same_sign = std::signbit(wide) == ((bits & 0x8000u) != 0);
        wrong += static_cast<double>(wide) == expected && same_sign && kind.narrow(wide) == stored
                     ? 0u
                     : 1u;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("half: rounding is to the nearest, ties to even, at every boundary", "[quant]") {
  for (const Kind& kind : kinds) {
    std::size_t wrong = 0;
    for (std::uint16_t low = 0; low < kind.infinity; ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      // Past the largest value the next step would have been where infinity is stored.
      const double below = value_of(low, kind.exponent_bits);
      const double above =
          high == kind.infinity
              ? 2 * below - value_of(static_cast<std::uint32_t>(low - 1), kind.exponent_bits)
              : value_of(high, kind.exponent_bits);
      const auto middle = static_cast<float>((below + above) / 2);  // exact: one bit more
      REQUIRE(static_cast<double>(middle) == (below + above) / 2);
      const std::uint16_t even = low % 2 == 0 ? low : high;
      const float inf = std::numeric_limits<float>::infinity();
      for (const int sign : {0, 0x8000}) {
        const float s = sign == 0 ? 1.0f : -1.0f;
        wrong += kind.narrow(s * middle) == (even | sign) ? 0u : 1u;
        wrong += kind.narrow(s * std::nextafter(middle, 0.0f)) == (low | sign) ? 0u : 1u;
        wrong += kind.narrow(s * std::nextafter(middle, inf)) == (high | sign) ? 0u : 1u;
      }
    }
    CHECK(wrong == 0);
    CHECK(kind.narrow(std::numeric_limits<float>::infinity()) == kind.infinity);
    CHECK(kind.narrow(-std::numeric_limits<float>::infinity()) == (kind.infinity | 0x8000));
    CHECK(kind.narrow(std::numeric_limits<float>::max()) == kind.infinity);
    CHECK(kind.narrow(std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(kind.narrow(-0.0f) == 0x8000);
  }
}

#if defined(__x86_64__)
namespace {
TENON_TARGET("avx2,fma,f16c") void narrow_by_hardware(const float* x, std::uint16_t* y) {
  avx2::store_half(y, avx2::load(x));
}
}  // namespace

TEST_CASE("half: the same bits as the processor's own conversion", "[quant]") {
  if (!supported(Isa::avx2)) return;
  std::size_t wrong = 0;
  float x[16];
  std::uint16_t y[16];
  for (std::uint64_t first = 0; first < (std::uint64_t{1} << 32); first += 16 * 4099) {
    for (std::uint64_t i = 0; i < 16; ++i)
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + i * 4099));
    narrow_by_hardware(x, y);
    for (int i = 0; i < 16; ++i) wrong += y[i] == half_of_float(x[i]) ? 0u : 1u;
  }
  CHECK(wrong == 0);
}
#endif
