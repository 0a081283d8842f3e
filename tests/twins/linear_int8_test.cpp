// The linear kernels on int8 activations against their definition, computed here from the file's
// bytes: activations rounded per token and 32 values, exact integer dot products, one float fold.
#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace weights;

namespace {

// The quants, scale and minimum of one block of a file.
struct Block {
  int q[32];
  float d = 0, m = 0;
};
Block block_of(int tag, const std::byte* at) {
  Block block;
  if (tag == 6) {
    block.d = std::ldexp(1.0f, std::to_integer<int>(at[0]) - 128);
    for (int i = 0; i < 32; ++i) {
      const auto byte = std::to_integer<int>(at[1 + i % 16]);
      const int code = i < 16 ? byte & 15 : byte >> 4;
      const int doubled[] = {0, 1, 2, 3, 4, 6, 8, 12};
      block.q[i] = code < 8 ? doubled[code] : -doubled[code - 8];
    }
    return block;
  }
  block.d = detail::load_half(at);
  const std::byte* quants = at + 2;
  if (tag == 5) {
    block.m = detail::load_half(at + 2);
    quants += 2;
  }
  for (int i = 0; i < 32; ++i) {
    const auto byte = std::to_integer<int>(quants[tag == 3 ? i : i % 16]);
    if (tag == 3) block.q[i] = byte < 128 ? byte : byte - 256;
    if (tag != 3) block.q[i] = (i < 16 ? byte & 15 : byte >> 4) - (tag == 4 ? 8 : 0);
  }
  return block;
}

struct Quantized {
  int q[32];
  float d = 0;
  int sum = 0;
};
Quantized quantize(const float* x) {
  float peak = 0;
  for (int i = 0; i < 32; ++i) peak = (std::max)(peak, std::fabs(x[i]));
  Quantized to{{}, peak / 127.0f, 0};
  const float inverse = 127.0f / peak;
  for (int i = 0; i < 32; ++i) {
    to.q[i] = static_cast<int>(std::nearbyint(x[i] * inverse));
    to.sum += to.q[i];
  }
  return to;
}

struct Reference {
  std::vector<float> fold;
  std::vector<double> exact;  // on the float activations, in double
  std::vector<double>
      allowed;  // half a step of each activation times |w|, and what the fold rounds
};
Reference reference(const FileMatrix& w, const std::vector<float>& x) {
  Reference all;
  const Dim blocks = w.in / 32;
  const std::size_t block_bytes = w.bytes.size() / static_cast<std::size_t>(w.out * blocks);
  const Dim tokens = static_cast<Dim>(x.size()) / w.in;
  for (Dim t = 0; t < tokens; ++t) {
    for (Dim r = 0; r < w.out; ++r) {
      float acc = 0;
      double exact = 0, steps = 0, magnitude = 0;
      for (Dim b = 0; b < blocks; ++b) {
        const float* xs = x.data() + t * w.in + b * 32;
        const Block wb = block_of(
            w.tag, w.bytes.data() + static_cast<std::size_t>(r * blocks + b) * block_bytes);
        const Quantized xb = quantize(xs);
        int dot = 0;
        for (int i = 0; i < 32; ++i) dot += wb.q[i] * xb.q[i];
        acc = std::fma(static_cast<float>(dot) * wb.d, xb.d, acc);
        if (w.tag == 5) acc = std::fma(wb.m, xb.d * static_cast<float>(xb.sum), acc);
        for (int i = 0; i < 32; ++i) {
          const double weight =
              static_cast<double>(w.values[static_cast<std::size_t>(r * w.in + b * 32 + i)]);
          exact += weight * static_cast<double>(xs[i]);
          // 127 / peak and its product with x are rounded, which moves a step by at most 127 eps.
          steps += std::fabs(weight) * static_cast<double>(xb.d) * (0.5 + 256 * 0x1p-24);
          magnitude += std::fabs(weight) *
                       (std::fabs(static_cast<double>(xs[i])) + static_cast<double>(xb.d));
        }
        // The minimum and the quants of a Q4_1 block cancel: bound their parts, not the weights.
        magnitude += 64 * std::fabs(static_cast<double>(wb.m)) * 127 * static_cast<double>(xb.d);
      }
      all.fold.push_back(acc);
      all.exact.push_back(exact);
      all.allowed.push_back(steps + static_cast<double>(3 * blocks + 3) * 0x1p-24 * magnitude);
    }
  }
  return all;
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
  const int tag = GENERATE(3, 4, 5, 6);
  for (const Dim out : {1, 15, 16, 17, 33, 172}) {
    for (const Dim in : {32, 64, 96, 544}) {
      const auto seed = static_cast<unsigned>(out * 1000 + in);
      const FileMatrix w = encode<All>(tag, out, in, normal(out * in, seed));
      const std::vector<float> x = normal(49 * in, seed + 1);
      Reference expected = reference(w, x);
      for (const Dim tokens : {49, 33, 17, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
        expected.fold.resize(static_cast<std::size_t>(tokens * out));
        check_bits(w, std::vector<float>(x.begin(), x.begin() + tokens * in), expected.fold);
      }
    }
  }
}

TEST_CASE("linear int8: any bytes of a file, and activations at the end of their range",
          "[twins]") {
  const int tag = GENERATE(3, 4, 5, 6);
  const FileMatrix w = random_blocks(tag, 50, 128, 3);  // holds -128 and 127 too
  std::vector<float> x(4 * 128);
  std::mt19937 generator(9);
  for (float& v : x) v = generator() % 2 == 0 ? 1.0f : -1.0f;  // every q is 127 or -127
  check_bits(w, x, reference(w, x).fold);
  FileMatrix lowest = w;  // Q8_0: every weight -128; Q4: every nibble 15
  for (std::size_t i = 0; i < lowest.bytes.size(); ++i) {
    const std::size_t block_bytes = lowest.bytes.size() / (50 * 4), scales = tag == 5   ? 4
                                                                             : tag == 6 ? 1
                                                                                        : 2;
    if (i % block_bytes >= scales) lowest.bytes[i] = static_cast<std::byte>(tag == 3 ? 0x80 : 0xff);
  }
  decode<All>(lowest);
  check_bits(lowest, std::vector<float>(4 * 128, 1.0f),
             reference(lowest, std::vector<float>(4 * 128, 1.0f)).fold);
  check_bits(lowest, x, reference(lowest, x).fold);
}

TEST_CASE("linear int8: more tokens than one pass, more k than one cut", "[twins]") {
  const int tag = GENERATE(3, 4, 5, 6);
  const FileMatrix w = encode<All>(tag, 70, 1088, normal(70 * 1088, 11));
  const std::vector<float> x = normal(137 * 1088, 12);
  check_bits(w, x, reference(w, x).fold);
}

TEST_CASE("linear int8: the error against float activations is that of rounding them", "[twins]") {
  for (const int tag : {3, 4, 5, 6}) {
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
