// The block formats whose scales are searched, and those with a fifth bit: against what the
// reference implementation (ggml 0.20.2, no importance matrix) makes of the same values and bytes,
// and on hostile blocks.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "quant/patterns.hpp"
#include "quant/safetensors.hpp"
#include "shared_data.hpp"
#include "tenon/quant/five_bits.hpp"
#include "tenon/quant/importance.hpp"
#include "tenon/quant/iq3_s.hpp"
#include "tenon/quant/iq4_nl.hpp"
#include "tenon/quant/iq4_xs.hpp"
#include "tenon/quant/k_quants.hpp"
#include "tenon/quant/nvfp4.hpp"
#include "tenon/quant/q8_sums.hpp"

using namespace tenon;

namespace {

constexpr float endless = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

// What the reference makes of patterns::values(kind, 8192), by kind, and of patterns::bytes; the
// most that a value of a block whose largest magnitude is 1 may be off: one step between codes.
struct Expected {
  std::uint32_t encoded[patterns::kinds];
  std::uint32_t decoded;
  float step;
};
template <class F>
constexpr Expected expected{};
template <>
constexpr Expected expected<Q5_0>{{0x3f7b8086, 0xc05fb696, 0x7ffc8e46, 0xf4124647, 0xe0553ec4,
                                   0x47669893, 0xac957433, 0x0c3c750f, 0xe9a3ee42, 0xafd0e86a},
                                  0x128c7e25,
                                  1 / 16.0f};
template <>
constexpr Expected expected<Q5_1>{{0x60451cb0, 0x9aa7527c, 0x75f54937, 0x09afd6a7, 0x9b2f02dd,
                                   0xeb3e5248, 0x4f06ec73, 0x30c30bbc, 0x33e691bf, 0x9a2cf6b6},
                                  0x7b5d73ef,
                                  2 / 31.0f};
template <>
constexpr Expected expected<IQ4_NL>{{0x7ccb5de9, 0x4fcfc350, 0x3625569d, 0x1f591c68, 0x8f208bfd,
                                     0xe402e854, 0x4f4e918d, 0x4311286f, 0xe0a69059, 0x3525a080},
                                    0x665fa42c,
                                    24 / 113.0f};
template <>
constexpr Expected expected<Q2_K>{{0x696c29cc, 0x7345f6dc, 0x7211c62d, 0x3aaecd77, 0x67dc5608,
                                   0x7156b1c5, 0xcfd627cf, 0x7f1fe011, 0x1a31a1bc, 0x70b3b89e},
                                  0x13c7e6fa,
                                  2 / 3.0f};
template <>
constexpr Expected expected<Q3_K>{{0xde0189f1, 0xd3137c03, 0x592e4f85, 0x978631aa, 0x59188076,
                                   0x329fb18f, 0x5838e270, 0xbb7fc537, 0xabc98088, 0x24804872},
                                  0x5d412022,
                                  1 / 3.0f};
template <>
constexpr Expected expected<Q4_K>{{0xd988f66a, 0xcf3ecc52, 0x2780fd0d, 0x2612a534, 0x71aba801,
                                   0xa09b1ff6, 0x955c07a6, 0xeee4d1e2, 0x58d4b248, 0x4ffade9f},
                                  0x5c6d23a8,
                                  2 / 15.0f};
template <>
constexpr Expected expected<Q5_K>{{0xda5e555b, 0xaaa9dd38, 0xf641be6d, 0x1bbe6ec1, 0xf1148288,
                                   0x60f8143d, 0x1aedce2c, 0x98babb81, 0x30da497c, 0x1564f295},
                                  0x1d3f1d3b,
                                  2 / 31.0f};
template <>
constexpr Expected expected<Q6_K>{{0xc16e45b3, 0xd26bff40, 0x852ada8b, 0xa593eb84, 0x0fa6c296,
                                   0xadbdc08c, 0xcfd89d53, 0x5536e5db, 0x75eff22b, 0x25e274f8},
                                  0xd212b1fc,
                                  1 / 31.0f};

template <class F>
std::vector<std::byte> encoded(const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes<F>(static_cast<Dim>(x.size())));
  F::encode(x.data(), static_cast<Dim>(x.size()), bytes.data());
  return bytes;
}
template <class F>
std::vector<float> decoded(const std::vector<std::byte>& bytes) {
  std::vector<float> x(bytes.size() / F::block_bytes * static_cast<std::size_t>(F::block));
  F::decode(bytes.data(), static_cast<Dim>(x.size()), x.data());
  return x;
}
template <class F>
std::vector<float> round_trip(const std::vector<float>& x) {
  return decoded<F>(encoded<F>(x));
}

using Formats = std::tuple<Q5_0, Q5_1, IQ4_NL, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K>;

}  // namespace

TEMPLATE_LIST_TEST_CASE("gguf blocks: the reference's values of its own blocks", "[quant]",
                        Formats) {
  using F = TestType;
  const auto path = shared_file("models/quant/quant_blocks.safetensors");
  if (path.empty()) return;
  const Tensors tensors(path);
  const std::string name(F::name);
  REQUIRE(tensors.contains(name + ".raw"));
  CHECK(decoded<F>(tensors.get<std::byte>(name + ".raw")) == tensors.get<float>(name + ".values"));
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: the reference quantizer's bytes", "[quant]", Formats) {
  using F = TestType;
  for (int kind = 0; kind < patterns::kinds; ++kind) {
    INFO(patterns::names[kind]);
    CHECK(patterns::name_of(encoded<F>(patterns::values(kind, 8192))) == expected<F>.encoded[kind]);
  }
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: any bytes decode as the reference does", "[quant]", Formats) {
  using F = TestType;
  CHECK(patterns::name_of(decoded<F>(patterns::bytes(row_bytes<F>(8192)))) == expected<F>.decoded);
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: errors stay within a step", "[quant]", Formats) {
  using F = TestType;
  for (int kind = 0; kind < patterns::kinds; ++kind) {
    // Of tiny values the half scale is subnormal: it is off by more.
    if (patterns::names[kind] == std::string_view("tiny")) continue;
    const auto x = patterns::values(kind, 8192);
    const auto y = round_trip<F>(x);
    for (std::size_t first = 0; first < x.size(); first += F::block) {
      float peak = 0, worst = 0;
      for (std::size_t i = first; i < first + F::block; ++i) {
        peak = (std::max)(peak, std::fabs(x[i]));
        worst = (std::max)(worst, std::fabs(x[i] - y[i]));
      }
      INFO(patterns::names[kind] << ", block at " << first << ", peak " << peak);
      CHECK(worst <= expected<F>.step * peak);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: quiet, constant and lonely values", "[quant]", Formats) {
  using F = TestType;
  for (const float quiet : {0.0f, -0.0f, 1e-45f, -1e-38f}) {
    for (const float v : round_trip<F>(std::vector<float>(256, quiet))) CHECK(v == 0.0f);
  }
  // One value many times is on the grid, but for the half scale's rounding.
  for (const float constant : {1.0f, -1.0f, 0.3f, -250.0f}) {
    for (const float v : round_trip<F>(std::vector<float>(256, constant))) {
      CHECK(std::fabs(v - constant) <= 1.01f * 0x1p-11f * std::fabs(constant));
    }
  }
  for (const float spike : {1.0f, -1.0f, 40.0f}) {
    std::vector<float> x(256);
    x[77] = spike;
    const auto y = round_trip<F>(x);
    // Scale and minimum are rounded to halves, each. IQ4_NL has no zero: its nearest level is 1.
    const float most = std::is_same_v<F, IQ4_NL> ? 1.01f / 113 : 2.02f * 0x1p-11f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(std::fabs(y[i] - x[i]) <= most * std::fabs(spike));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: values on the grid come back exactly", "[quant]", Formats) {
  using F = TestType;
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) {
    const int group = i % 16;  // every group of 16 has the lowest and the highest code
    const auto code = [&](int top) { return group == 3 ? 0 : group == 8 ? top : i * 11 % top; };
    float value = 0;
    if constexpr (std::is_same_v<F, Q5_0>) value = 0.375f * static_cast<float>(code(31) - 16);
    if constexpr (std::is_same_v<F, Q5_1>) value = 0.375f * static_cast<float>(code(31)) - 3.25f;
    if constexpr (std::is_same_v<F, IQ4_NL>) {
      value = 0.375f * static_cast<float>(detail::iq4_levels[code(15)]);
    }
    if constexpr (std::is_same_v<F, Q3_K>) value = 0.25f * static_cast<float>(code(7) - 4);
    if constexpr (std::is_same_v<F, Q6_K>) value = 0.25f * static_cast<float>(code(63) - 32);
    if constexpr (std::is_same_v<F, Q2_K>)
      value = 15.0f * (0.25f * static_cast<float>(code(3)) - 0.125f);
    if constexpr (std::is_same_v<F, Q4_K>)
      value = 63.0f * (0.25f * static_cast<float>(code(15)) - 0.125f);
    if constexpr (std::is_same_v<F, Q5_K>)
      value = 63.0f * (0.25f * static_cast<float>(code(31)) - 0.125f);
    x[static_cast<std::size_t>(i)] = value;
  }
  CHECK(round_trip<F>(x) == x);
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: what is no number poisons its block and no other", "[quant]",
                        Formats) {
  using F = TestType;
  const auto calm = patterns::values(0, 768);
  const auto calm_bytes = encoded<F>(calm);
  for (const float loud :
       {endless, -endless, no_number, -no_number, 3e38f, -3e38f, 1e30f, 0x1p36f}) {
    for (const std::size_t at : {256u, 271u, 300u, 511u}) {
      auto x = calm;
      x[at] = loud;
      const auto bytes = encoded<F>(x);
      const auto y = decoded<F>(bytes);
      const std::size_t block = at / F::block;
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::isnan(y[i]) == (i / F::block == block));
      CHECK(std::equal(bytes.begin(),
                       bytes.begin() + static_cast<std::ptrdiff_t>(block * F::block_bytes),
                       calm_bytes.begin()));
      CHECK(std::equal(
          bytes.begin() + static_cast<std::ptrdiff_t>((block + 1) * F::block_bytes), bytes.end(),
          calm_bytes.begin() + static_cast<std::ptrdiff_t>((block + 1) * F::block_bytes)));
    }
  }
  // Numbers, but beyond the largest half times the largest code: no finite value stands for them.
  for (const float large : {1e10f, -1e10f, 6e10f}) {
    std::vector<float> x(256, 0.5f);
    x[200] = large;
    CHECK_FALSE(std::isfinite(round_trip<F>(x)[200]));
  }
}

TEMPLATE_LIST_TEST_CASE("gguf blocks: rows of any length, parts of any length", "[quant]",
                        Formats) {
  using F = TestType;
  const auto x = patterns::values(0, 700);
  std::vector<std::byte> row(row_bytes<F>(700));
  encode_row<F>(x.data(), 700, row.data());
  auto padded = x;
  padded.resize(row.size() / F::block_bytes * static_cast<std::size_t>(F::block));
  CHECK(row == encoded<F>(padded));
  const auto all = decoded<F>(row);
  std::vector<float> part(700);
  for (const Dim first : {0, 1, 31, 32, 255, 256, 600}) {
    for (const Dim n : {0, 1, 33, 100}) {
      decode_part<F>(row.data(), first, n, part.data());
      CHECK(std::equal(part.begin(), part.begin() + n, all.begin() + first));
    }
  }
}
