// The linear kernels on int8 activations against their definition, computed here from the file's
// bytes: activations rounded per token and 32 values, exact integer dot products, one float fold.
#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace weights;

namespace {

// The quants of 32 k of a row, and the scale and minimum of each half of them.
struct Unit {
  int q[32];
  float d[2] = {}, m[2] = {};
};
// What the bytes of a block say, format by format as the tables of GGUF do. `u` counts its units.
class FileBlock {
 public:
  explicit FileBlock(const std::byte* at) : at_(at) {}
  int byte(Dim i) const { return std::to_integer<int>(at_[i]); }
  int bits(Dim i, Dim shift, int mask) const { return byte(i) >> shift & mask; }
  float half(Dim i) const { return detail::load_half(at_ + i); }
  // Value i of 32 whose nibbles are 16 bytes from `first` on.
  int nibble(Dim first, Dim i) const { return bits(first + i % 16, i / 16 * 4, 15); }

  Unit unit(Q8_0, Dim) const {
    return plain(half(0), 0, [&](Dim i) { return byte(2 + i) - (byte(2 + i) < 128 ? 0 : 256); });
  }
  Unit unit(Q4_0, Dim) const {
    return plain(half(0), 0, [&](Dim i) { return nibble(2, i) - 8; });
  }
  Unit unit(Q4_1, Dim) const {
    return plain(half(0), half(2), [&](Dim i) { return nibble(4, i); });
  }
  Unit unit(Q5_0, Dim) const {
    return plain(half(0), 0, [&](Dim i) { return nibble(6, i) + 16 * fifth(2, i) - 16; });
  }
  Unit unit(Q5_1, Dim) const {
    return plain(half(0), half(2), [&](Dim i) { return nibble(8, i) + 16 * fifth(4, i); });
  }
  Unit unit(IQ4_NL, Dim) const {
    constexpr int table[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
    return plain(half(0), 0, [&](Dim i) { return table[nibble(2, i)]; });
  }
  Unit unit(Mxfp4, Dim) const {
    constexpr int doubled[] = {0, 1, 2, 3, 4, 6, 8, 12};
    return plain((byte(0) == 255 ? NAN : std::ldexp(1.0f, byte(0) - 128)), 0, [&](Dim i) {
      const int code = nibble(1, i);
      return code < 8 ? doubled[code] : -doubled[code - 8];
    });
  }
  Unit unit(Nvfp4, Dim u) const {
    constexpr int doubled[] = {0, 1, 2, 3, 4, 6, 8, 12};
    Unit of = plain(0, 0, [&](Dim i) {
      const Dim g = 2 * u + i / 16;
      const int code = bits(4 + 8 * g + i % 8, i % 16 / 8 * 4, 15);
      return code < 8 ? doubled[code] : -doubled[code - 8];
    });
    for (int s = 0; s < 2; ++s) {
      const int code = byte(2 * u + s), exponent = code >> 3 & 15;
      const int mantissa = (code & 7) + (exponent > 0 ? 8 : 0);
      of.d[s] = code == 0x7f
                    ? 0.0f
                    : std::ldexp(static_cast<float>(mantissa), (exponent > 0 ? exponent : 1) - 11);
    }
    return of;
  }
  Unit unit(IQ4_XS, Dim u) const {
    constexpr int table[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
    const int code = bits(4 + u / 2, u % 2 * 4, 15) + 16 * bits(2 + u / 4, u % 4 * 2, 3);
    return plain(half(0) * static_cast<float>(code - 32), 0,
                 [&](Dim i) { return table[nibble(8 + 16 * u, i)]; });
  }
  Unit unit(Q4_K, Dim u) const {
    return six_bit_pairs(u, [&](Dim i) { return bits(16 + u / 2 * 32 + i, u % 2 * 4, 15); });
  }
  Unit unit(Q5_K, Dim u) const {
    return six_bit_pairs(u, [&](Dim i) {
      return bits(48 + u / 2 * 32 + i, u % 2 * 4, 15) + 16 * bits(16 + i, u, 1);
    });
  }
  Unit unit(Q2_K, Dim u) const {
    Unit of = plain(0, 0, [&](Dim i) { return bits(16 + u / 4 * 32 + i, u % 4 * 2, 3); });
    for (int s = 0; s < 2; ++s) {
      of.d[s] = half(80) * static_cast<float>(bits(2 * u + s, 0, 15));
      of.m[s] = -(half(82) * static_cast<float>(bits(2 * u + s, 4, 15)));
    }
    return of;
  }
  Unit unit(Q3_K, Dim u) const {
    Unit of = plain(0, 0, [&](Dim i) {
      return bits(32 + u / 4 * 32 + i, u % 4 * 2, 3) - (bits(i, u, 1) == 1 ? 0 : 4);
    });
    for (int s = 0; s < 2; ++s) {
      const Dim g = 2 * u + s;
      const int code = bits(96 + g % 8, g / 8 * 4, 15) + 16 * bits(104 + g % 4, g / 4 * 2, 3);
      of.d[s] = half(108) * static_cast<float>(code - 32);
    }
    return of;
  }
  Unit unit(Q6_K, Dim u) const {
    const Dim part = u / 4, strip = u % 4;
    Unit of = plain(0, 0, [&](Dim i) {
      const int low = bits(64 * part + strip % 2 * 32 + i, strip / 2 * 4, 15);
      return low + 16 * bits(128 + 32 * part + i, 2 * strip, 3) - 32;
    });
    for (int s = 0; s < 2; ++s) {
      const int code = byte(192 + 2 * u + s);
      of.d[s] = half(208) * static_cast<float>(code < 128 ? code : code - 256);
    }
    return of;
  }

 private:
  int fifth(Dim first, Dim i) const { return bits(first + i / 8, i % 8, 1); }
  template <class Quant>
  static Unit plain(float d, float m, Quant quant) {
    Unit of{{}, {d, d}, {m, m}};
    for (int i = 0; i < 32; ++i) of.q[i] = quant(i);
    return of;
  }
  // Group j of eight: six bits of scale and of minimum in twelve bytes from byte 4 on.
  template <class Quant>
  Unit six_bit_pairs(Dim j, Quant quant) const {
    const int scale = j < 4 ? bits(4 + j, 0, 63) : bits(8 + j, 0, 15) + 16 * bits(j, 6, 3);
    const int minimum = j < 4 ? bits(8 + j, 0, 63) : bits(8 + j, 4, 15) + 16 * bits(4 + j, 6, 3);
    return plain(half(0) * static_cast<float>(scale), -(half(2) * static_cast<float>(minimum)),
                 quant);
  }
  const std::byte* at_;
};
// Of a format with one scale for 32 values, and of those that have minima.
template <class F>
inline constexpr bool one_scale = !std::is_same_v<F, Q2_K> && !std::is_same_v<F, Q3_K> &&
                                  !std::is_same_v<F, Q6_K> && !std::is_same_v<F, Nvfp4>;
template <class F>
inline constexpr bool has_minima =
    std::is_same_v<F, Q4_1> || std::is_same_v<F, Q5_1> || std::is_same_v<F, Q2_K> ||
    std::is_same_v<F, Q4_K> || std::is_same_v<F, Q5_K>;

struct Quantized {
  int q[32];
  float d = 0;
};
Quantized quantize(const float* x) {
  float peak = 0;
  for (int i = 0; i < 32; ++i) peak = (std::max)(peak, std::fabs(x[i]));
  Quantized to{{}, peak / 127.0f};
  const float inverse = 127.0f / peak;
  for (int i = 0; i < 32; ++i) to.q[i] = static_cast<int>(std::nearbyint(x[i] * inverse));
  return to;
}

struct Reference {
  std::vector<float> fold;
  std::vector<double> exact;  // on the float activations, in double
  std::vector<double>
      allowed;  // half a step of each activation times |w|, and what the fold rounds
};
template <class F>
Reference reference_of(const FileMatrix& w, const std::vector<float>& x) {
  Reference all;
  const Dim units = w.in / 32, tokens = static_cast<Dim>(x.size()) / w.in;
  constexpr int scales = one_scale<F> ? 1 : 2, share = 32 / scales;
  for (Dim t = 0; t < tokens; ++t) {
    for (Dim r = 0; r < w.out; ++r) {
      const std::byte* row = w.bytes.data() + static_cast<std::size_t>(r) * row_bytes<F>(w.in);
      float acc = 0;
      double exact = 0, steps = 0, magnitude = 0;
      for (Dim u = 0; u < units; ++u) {
        const float* xs = x.data() + t * w.in + u * 32;
        const std::byte* block = row + static_cast<std::size_t>(u * 32 / F::block) * F::block_bytes;
        const Unit wu = FileBlock(block).unit(F{}, u % (F::block / 32));
        const Quantized xu = quantize(xs);
        const auto dx = static_cast<double>(xu.d);
        for (int s = 0; s < scales; ++s) {
          int dot = 0, sum = 0;
          for (int i = s * share; i < (s + 1) * share; ++i) {
            dot += wu.q[i] * xu.q[i];
            sum += xu.q[i];
          }
          const float scaled = static_cast<float>(dot) * wu.d[s];
          acc = std::fma(std::isfinite(wu.d[s]) ? scaled : NAN, xu.d, acc);
          if (has_minima<F>) acc = std::fma(wu.m[s], xu.d * static_cast<float>(sum), acc);
          // Minimum and quants cancel: bound their parts, not the weights.
          magnitude += 64 * std::fabs(static_cast<double>(wu.m[s])) * 127 * dx;
        }
        for (int i = 0; i < 32; ++i) {
          const double weight =
              static_cast<double>(w.values[static_cast<std::size_t>(r * w.in + u * 32 + i)]);
          exact += weight * static_cast<double>(xs[i]);
          // 127 / peak and its product with x are rounded, which moves a step by at most 127 eps.
          steps += std::fabs(weight) * dx * (0.5 + 256 * 0x1p-24);
          magnitude += std::fabs(weight) * (std::fabs(static_cast<double>(xs[i])) + dx);
        }
      }
      all.fold.push_back(acc);
      all.exact.push_back(exact);
      all.allowed.push_back(steps +
                            static_cast<double>(3 * scales * units + 3) * 0x1p-24 * magnitude);
    }
  }
  return all;
}
Reference reference(const FileMatrix& w, const std::vector<float>& x) {
  return FormatList<All>::visit(w.tag, [&]<class F>(F) {
    if constexpr (F::block == 1) {
      return Reference{};
    } else {
      return reference_of<F>(w, x);
    }
  });
}

void check_bits(const FileMatrix& w, const std::vector<float>& x,
                const std::vector<float>& expected) {
  const PackedMatrix<All> packed = pack<All>(w);
  for (const Isa isa : supported_isas()) {
    std::vector<float> y = product(packed, x, {.isa = isa, .activations = Activations::int8});
    y.resize(expected.size());
    INFO("format " << w.tag << ", " << w.out << " x " << w.in << ", "
                   << static_cast<Dim>(x.size()) / w.in << " tokens, " << name_of(isa));
    REQUIRE(same_bits(y, expected));
  }
}

}  // namespace

TEST_CASE("linear int8: every instruction set returns the fold", "[twins]") {
  const int tag = GENERATE(range(first_blocks, int{FormatList<All>::size}));
  for (const Dim out : {1, 15, 16, 17, 33, 172}) {
    for (const Dim in : {32, 64, 96, 544}) {
      const auto seed = static_cast<unsigned>(out * 1000 + in);
      const FileMatrix w = encode<All>(tag, out, in, normal(out * in, seed));
      const std::vector<float> x = normal(49 * in, seed + 1);
      Reference expected = reference(w, x);
      for (const Dim tokens : {49, 33, 32, 17, 16, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
        expected.fold.resize(static_cast<std::size_t>(tokens * out));
        check_bits(w, std::vector<float>(x.begin(), x.begin() + tokens * in), expected.fold);
      }
    }
  }
}

TEST_CASE("linear int8: any bytes of a file, and activations at the end of their range",
          "[twins]") {
  const int tag = GENERATE(range(first_blocks, int{FormatList<All>::size}));
  const FileMatrix w = random_blocks(tag, 50, 128, 3);  // holds -128 and 127 too
  std::vector<float> x(40 * 128);                       // enough for a matrix unit
  std::mt19937 generator(9);
  for (float& v : x) v = generator() % 2 == 0 ? 1.0f : -1.0f;  // every q is 127 or -127
  const auto check_all = [&](const FileMatrix& weights, const std::vector<float>& rows) {
    Reference expected = reference(weights, rows);
    for (const std::size_t tokens : {40u, 16u, 8u, 4u, 1u}) {
      expected.fold.resize(tokens * 50);
      const auto end = rows.begin() + static_cast<std::ptrdiff_t>(tokens * 128);
      check_bits(weights, {rows.begin(), end}, expected.fold);
    }
  };
  check_all(w, x);
  FileMatrix lowest = w;  // Q8_0: every weight -128; else every bit of codes set
  FormatList<All>::visit(tag, [&]<class F>(F) {
    const auto code = std::byte{std::is_same_v<F, Q8_0> ? std::uint8_t{0x80} : std::uint8_t{0xff}};
    for (std::size_t i = 0; i < lowest.bytes.size(); ++i) {
      if (!in_scale<F>(i % F::block_bytes)) lowest.bytes[i] = code;
    }
  });
  decode<All>(lowest);
  check_all(lowest, std::vector<float>(40 * 128, 1.0f));
  check_all(lowest, x);
}

TEST_CASE("linear int8: scales at and beyond the end of their range, in every number of tokens",
          "[twins]") {
  const auto check = [](int tag, std::size_t row, std::initializer_list<int> first_bytes) {
    FileMatrix w = encode<All>(tag, 17, 64, normal(17 * 64, 31));
    auto* at = w.bytes.data() + row * (w.bytes.size() / 17);
    for (const int byte : first_bytes) *at++ = static_cast<std::byte>(byte);
    decode<All>(w);
    const std::vector<float> x = normal(40 * 64, 32);
    Reference expected = reference(w, x);
    for (const std::size_t tokens : {40u, 16u, 8u, 1u}) {
      expected.fold.resize(tokens * 17);
      check_bits(w, {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(tokens * 64)},
                 expected.fold);
    }
  };
  for (const std::string_view name : {"q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"}) {
    const int tag = tag_of_name<All>(name);
    check(tag, 2, {0xff, 0x7b});   // the largest half
    check(tag, 2, {0x00, 0x7c});   // infinity
    check(tag, 16, {0x00, 0xfe});  // NaN
    check(tag, 0, {0x01, 0x80});   // the smallest, negative
  }
  const int mxfp4 = tag_of_name<All>("mxfp4");
  for (const int exponent : {0, 1, 2, 231, 232, 233, 254, 255}) check(mxfp4, 3, {exponent});
}

TEST_CASE("linear int8: more tokens than one pass, more k than one cut", "[twins]") {
  const int tag = GENERATE(range(first_blocks, int{FormatList<All>::size}));
  const FileMatrix w = encode<All>(tag, 33, 1088, normal(33 * 1088, 11));
  const std::vector<float> x = normal(290 * 1088, 12);
  check_bits(w, x, reference(w, x).fold);
}

TEST_CASE("linear int8: the error against float activations is that of rounding them", "[twins]") {
  for (int tag = first_blocks; tag < FormatList<All>::size; ++tag) {
    const FileMatrix w = encode<All>(tag, 64, 512, normal(64 * 512, 21));
    const std::vector<float> x = normal(8 * 512, 22, 3.0f);
    const Reference expected = reference(w, x);
    const std::vector<float> y = product(pack<All>(w), x, {.activations = Activations::int8});
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < expected.exact.size(); ++i) {
      const double error = std::fabs(static_cast<double>(y[i]) - expected.exact[i]);
      worst = (std::max)(worst, error / expected.allowed[i]);
      largest = (std::max)(largest, error);
    }
    INFO("format " << tag << ": worst error " << worst << " of the bound");
    CHECK(worst <= 1);
    CHECK(largest > 0);
  }
}
