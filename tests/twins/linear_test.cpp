// The linear kernels on float activations against their definition: one fma per weight, k
// ascending.
#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace weights;

namespace {

struct Reference {
  std::vector<float> fold;      // acc = fma(w, x, acc): the bits every kernel must return
  std::vector<double> exact;    // in double
  std::vector<double> allowed;  // n eps sum |w| |x|: what rounding may do to a fold of n terms
};
Reference reference(const FileMatrix& w, const std::vector<float>& x) {
  Reference all;
  const Dim tokens = static_cast<Dim>(x.size()) / w.in;
  for (Dim t = 0; t < tokens; ++t) {
    for (Dim r = 0; r < w.out; ++r) {
      float fold = 0;
      double exact = 0, magnitude = 0;
      for (Dim k = 0; k < w.in; ++k) {
        const float weight = w.values[static_cast<std::size_t>(r * w.in + k)];
        const float value = x[static_cast<std::size_t>(t * w.in + k)];
        fold = std::fma(weight, value, fold);
        exact += static_cast<double>(weight) * static_cast<double>(value);
        magnitude += std::fabs(static_cast<double>(weight) * static_cast<double>(value));
      }
      all.fold.push_back(fold);
      all.exact.push_back(exact);
      all.allowed.push_back(static_cast<double>(w.in) * 0x1p-24 * magnitude);
    }
  }
  return all;
}

// Every format, shape and token count; the fold must come back bit for bit from every kernel.
void check(int tag, const std::vector<Dim>& ins) {
  for (const Dim out : {1, 15, 16, 17, 33, 172, 200}) {
    for (const Dim in : ins) {
      const auto seed = static_cast<unsigned>(out * 1000 + in);
      const FileMatrix w = encode<All>(tag, out, in, normal(out * in, seed));
      const PackedMatrix<All> packed = pack<All>(w);
      const std::vector<float> x = normal(33 * in, seed + 1);
      Reference expected = reference(w, x);
      double worst = 0;
      for (std::size_t i = 0; i < expected.fold.size(); ++i) {
        const double error = std::fabs(static_cast<double>(expected.fold[i]) - expected.exact[i]);
        worst = (std::max)(worst, error - expected.allowed[i]);
      }
      INFO("format " << FormatList<All>::names() << " [" << tag << "], " << out << " x " << in);
      CHECK(worst <= 0);
      for (const Dim tokens : {33, 32, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
        const std::vector<float> some(x.begin(), x.begin() + tokens * in);
        expected.fold.resize(static_cast<std::size_t>(tokens * out));
        for (const Isa isa : supported_isas()) {
          std::vector<float> y = product(packed, some, {.isa = isa});
          y.resize(static_cast<std::size_t>(tokens * out));
          INFO(name_of(isa) << ", " << tokens << " tokens");
          REQUIRE(same_bits(y, expected.fold));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("linear: every instruction set returns the fold of a dense matrix", "[twins]") {
  const int tag = GENERATE(0, 1, 2);
  check(tag, {1, 15, 16, 17, 33, 64, 65, 172, 300});
}

TEST_CASE("linear: every instruction set returns the fold of exactly decoded blocks", "[twins]") {
  const int tag = GENERATE(range(first_blocks, int{FormatList<All>::size}));
  check(tag, {32, 64, 96, 160, 288});
}

TEST_CASE("linear: more tokens than one pass holds", "[twins]") {
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    const Dim in = 160, tokens = 131;
    const FileMatrix w = encode<All>(tag, 120, in, normal(120 * in, 5));
    const std::vector<float> x = normal(tokens * in, 6);
    const std::vector<float> expected = reference(w, x).fold;
    for (const Isa isa : supported_isas()) {
      std::vector<float> y = product(pack<All>(w), x, {.isa = isa});
      y.resize(expected.size());
      INFO("format " << tag << ", " << name_of(isa));
      REQUIRE(same_bits(y, expected));
    }
  }
}

TEST_CASE("linear: extreme values follow the arithmetic of the fold", "[twins]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> extremes = {0.0f,   -0.0f, 1e-42f, -1e-42f, 1e30f, -1e30f,
                                       1e-30f, 3e38f, 1.0f,   -1.0f,   inf,   nan};
  std::mt19937 generator(7);
  const Dim out = 40, in = 64;
  const Dim tokens = GENERATE(6, 8, 35);
  for (const bool finite : {true, false}) {
    const auto draw = [&](Dim n) {
      std::vector<float> values(static_cast<std::size_t>(n));
      for (float& v : values) v = extremes[generator() % (extremes.size() - (finite ? 2 : 0))];
      return values;
    };
    for (int tag = 0; tag < FormatList<All>::size; ++tag) {
      const FileMatrix w = encode<All>(tag, out, in, draw(out * in));
      const std::vector<float> x = draw(tokens * in);
      const std::vector<float> expected = reference(w, x).fold;
      for (const Isa isa : supported_isas()) {
        std::vector<float> y = product(pack<All>(w), x, {.isa = isa});
        y.resize(expected.size());
        INFO("format " << tag << ", " << name_of(isa));
        CHECK(same_bits(y, expected));
      }
    }
  }
}

TEST_CASE("linear: every 16-bit weight is read as its format decodes it", "[twins]") {
  for (const int tag : {1, 2}) {
    FileMatrix w{tag, 65536, 1, std::vector<std::byte>(65536 * 2), {}};
    for (std::size_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(w.bytes.data() + 2 * i, &bits, 2);
    }
    decode<All>(w);
    const PackedMatrix<All> packed = pack<All>(w);
    for (const Isa isa : supported_isas()) {
      for (const Dim tokens : {1, 2, 7, 33}) {  // from memory, in cuts, and through the panel
        const std::vector<float> y = product(
            packed, std::vector<float>(static_cast<std::size_t>(tokens), 1.0f), {.isa = isa});
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(tokens) * 65536; ++i) {
          const float value = w.values[i % 65536];
          const bool equal = value != value ? y[i] != y[i] : y[i] == value;
          wrong += equal ? 0u : 1u;
        }
        INFO("format " << tag << ", " << name_of(isa));
        CHECK(wrong == 0);
      }
    }
  }
}
