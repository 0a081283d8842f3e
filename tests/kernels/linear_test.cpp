// What holds of linear() beside its numbers: threads, shapes of the output, adding to it, several
// outputs at once, formats of a user, broken activations.
#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/kernels/every_format.hpp"

using namespace weights;

namespace {

// Seven values in nine bytes: a format the library has never heard of. Only encode and decode.
template <Dim Block>
struct Offset {
  static constexpr std::string_view name = "offset";
  static constexpr Dim block = Block;
  static constexpr std::size_t block_bytes = static_cast<std::size_t>(Block) + 2;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= Block, x += Block, to += block_bytes) {
      to[0] = std::byte{0x5a};
      to[1] = std::byte{0xa5};
      for (Dim i = 0; i < Block; ++i) {
        to[2 + i] = static_cast<std::byte>(static_cast<int>(std::nearbyint(x[i] * 16.0f)) + 100);
      }
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= Block, x += Block, from += block_bytes) {
      for (Dim i = 0; i < Block; ++i) {
        x[i] = static_cast<float>(std::to_integer<int>(from[2 + i]) - 100) * 0.0625f;
      }
    }
  }
};

// The first rows of y, without the canary row after them.
std::vector<float> head(std::vector<float> y, Dim n) {
  y.resize(static_cast<std::size_t>(n));
  return y;
}

}  // namespace

TEST_CASE("linear: one token alone gives the bits it gives among others", "[kernels]") {
  const Dim out = 201, in = 320;
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    const PackedMatrix<All> w = pack<All>(encode<All>(tag, out, in, normal(out * in, 1)));
    for (const Dim tokens : {9, 139}) {  // within what a leaf takes at once, and beyond it
      const std::vector<float> x = normal(tokens * in, 2);
      for (const Isa isa : supported_isas()) {
        for (const Activations activations : {Activations::f32, Activations::int8}) {
          const std::vector<float> all = product(w, x, {.isa = isa, .activations = activations});
          for (Dim t = 0; t < tokens; t += t < 8 ? 1 : 10) {
            const std::vector<float> one(x.begin() + t * in, x.begin() + (t + 1) * in);
            const std::vector<float> alone =
                product(w, one, {.isa = isa, .activations = activations});
            const std::vector<float> row(all.begin() + t * out, all.begin() + (t + 1) * out);
            INFO("format " << tag << ", " << name_of(isa) << ", token " << t << " of " << tokens);
            REQUIRE(same_bits(head(alone, out), row));
          }
        }
      }
    }
  }
}

TEST_CASE("linear: the number of threads changes no bit", "[kernels]") {
  const Dim out = 500, in = 320;
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    const FileMatrix w = encode<All>(tag, out, in, normal(out * in, 3));
    const PackedMatrix<All> packed = pack<All>(w);
    for (const Dim tokens : {1, 3, 7}) {  // all above the work that one thread keeps to itself
      const std::vector<float> x = normal(tokens * in, 4);
      for (const Isa isa : supported_isas()) {
        const std::vector<float> one =
            product(packed, x, {.isa = isa, .activations = Activations::int8});
        for (const int threads : {2, 3, 64}) {
          const Call call{.isa = isa, .activations = Activations::int8, .threads = threads};
          REQUIRE(same_bits(product(packed, x, call), one));
        }
      }
    }
  }
}

TEST_CASE("linear: writes its outputs and nothing else", "[kernels]") {
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    for (const Dim out : {1, 15, 16, 17, 40}) {
      const Dim in = 64, stride = out + 5;
      const PackedMatrix<All> w = pack<All>(encode<All>(tag, out, in, normal(out * in, 5)));
      for (const Dim tokens : {1, 3, 8}) {
        const std::vector<float> x = normal(tokens * in, 6);
        for (const Isa isa : supported_isas()) {
          for (const Activations activations : {Activations::f32, Activations::int8}) {
            const std::vector<float> y = product(
                w, x, {.isa = isa, .activations = activations, .stride = stride, .before = -77.0f});
            const std::vector<float> plain =
                product(w, x, {.isa = isa, .activations = activations});
            std::size_t wrong = 0;
            for (Dim i = 0; i < (tokens + 1) * stride; ++i) {
              const Dim t = i / stride, r = i % stride;
              const float expected =
                  t < tokens && r < out ? plain[static_cast<std::size_t>(t * out + r)] : -77.0f;
              wrong += y[static_cast<std::size_t>(i)] == expected ? 0u : 1u;
            }
            INFO("format " << tag << ", " << name_of(isa) << ", " << out << " rows, " << tokens
                           << " tokens");
            REQUIRE(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("linear: accumulate adds the finished product once", "[kernels]") {
  const Dim out = 37, in = 544;
  const Dim tokens = GENERATE(6, 8, 35);
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    const PackedMatrix<All> w = pack<All>(encode<All>(tag, out, in, normal(out * in, 7)));
    const std::vector<float> x = normal(tokens * in, 8);
    for (const Isa isa : supported_isas()) {
      for (const Activations activations : {Activations::f32, Activations::int8}) {
        std::vector<float> expected = product(w, x, {.isa = isa, .activations = activations});
        for (float& v : expected) v = 1000.1f + v;
        const std::vector<float> y = product(
            w, x, {.isa = isa, .activations = activations, .accumulate = true, .before = 1000.1f});
        REQUIRE(same_bits(head(y, tokens * out), head(expected, tokens * out)));
      }
    }
  }
}

TEST_CASE("linear: several outputs share an input", "[kernels]") {
  const Dim in = 96;
  std::vector<PackedMatrix<All>> matrices;  // of few and many tiles, equal formats side by side
  for (const int tag : {0, 0, 3, 3, 5, 12, 12, 14, 1, 2, 2, 0, 4}) {
    const Dim out = 20 + 31 * static_cast<Dim>(matrices.size());
    matrices.push_back(pack<All>(encode<All>(tag, out, in, normal(out * in, 10))));
  }
  for (const Dim tokens : {1, 3, 5}) {
    const std::vector<float> x = normal(tokens * in, 9);
    AlignedBuffer scratch(static_cast<std::size_t>(QuantizedRows::bytes(tokens, in)));
    for (const Isa isa : supported_isas()) {
      for (const int threads : {1, 2, 5}) {
        std::vector<std::vector<float>> results;
        std::vector<LinearOutput<All>> outputs;
        for (const PackedMatrix<All>& w : matrices) {
          const bool accumulate = results.size() % 2 == 1;
          results.emplace_back(static_cast<std::size_t>(tokens * w.out()), 0.5f);
          outputs.push_back({&w, matrix(results.back().data(), tokens, w.out()), accumulate});
        }
        Backwards team(threads);
        linear<All>(team, isa, matrix<const float>(x.data(), tokens, in), outputs,
                    Activations::int8, QuantizedRows::carve(scratch.data(), tokens, in));
        for (std::size_t i = 0; i < matrices.size(); ++i) {
          const std::vector<float> alone = product(matrices[i], x,
                                                   {.isa = isa,
                                                    .activations = Activations::int8,
                                                    .accumulate = i % 2 == 1,
                                                    .before = 0.5f});
          REQUIRE(same_bits(results[i], head(alone, tokens * matrices[i].out())));
        }
      }
    }
  }
}

TEST_CASE("linear: groups of rows have the bits of their rows alone", "[kernels]") {
  constexpr Dim in = 96, rows = 40;
  struct Some {
    Dim first, count;
  };
  constexpr Some some[] = {
      {0, 1}, {1, 5}, {8, 17}, {27, 2}, {30, 7}};  // with rows of no group between
  const std::vector<float> x = normal(rows * in, 18);
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    const PackedMatrix<All> w = pack<All>(encode<All>(tag, 53, in, normal(53 * in, 19)));
    const PackedMatrix<All> v = pack<All>(encode<All>(tag, 20, in, normal(20 * in, 20)));
    for (const Isa isa : supported_isas()) {
      for (const int threads : {1, 3}) {
        AlignedBuffer scratch(static_cast<std::size_t>(QuantizedRows::bytes(rows, in)));
        fill_with_anything(scratch);
        std::vector<std::vector<float>> results;
        std::vector<LinearGroup<All>> groups;
        for (const Some& g : some) {
          LinearGroup<All> group{g.first, g.count, {}, 2};
          for (int i = 0; i < 2; ++i) {
            const PackedMatrix<All>& weight = i == 0 ? w : v;
            results.emplace_back(static_cast<std::size_t>(g.count * weight.out()));
            group.outputs[i] = {&weight, matrix(results.back().data(), g.count, weight.out())};
          }
          groups.push_back(group);
        }
        Backwards team(threads);
        linear_groups<All>(team, isa, matrix<const float>(x.data(), rows, in), groups,
                           Activations::int8, QuantizedRows::carve(scratch.data(), rows, in));
        for (std::size_t i = 0; i < results.size(); ++i) {
          const Some& g = some[i / 2];
          const PackedMatrix<All>& weight = i % 2 == 0 ? w : v;
          const std::vector<float> own(x.begin() + g.first * in,
                                       x.begin() + (g.first + g.count) * in);
          const Call call{.isa = isa, .activations = Activations::int8};
          INFO("format " << tag << ", " << name_of(isa) << ", rows from " << g.first);
          REQUIRE(same_bits(results[i], head(product(weight, own, call), g.count * weight.out())));
        }
      }
    }
  }
}

TEST_CASE("linear: rows may end inside a block", "[kernels]") {
  for (int tag = first_blocks; tag < FormatList<All>::size; ++tag) {
    const Dim block = FormatList<All>::visit(tag, []<class F>(F) { return F::block; });
    for (const Dim in : {1, 40, 172, 300}) {
      const Dim padded = ceil_div(in, block) * block, out = 35, tokens = 5;
      FileMatrix w = encode<All>(tag, out, in, normal(out * in, 16));
      const PackedMatrix<All> ragged = pack<All>(w);
      w.in = padded;  // the same bytes: the file fills its last block up with zeros
      const PackedMatrix<All> whole = pack<All>(w);
      const std::vector<float> x = normal(tokens * in, 17);
      std::vector<float> wide(static_cast<std::size_t>(tokens * padded));
      for (Dim t = 0; t < tokens; ++t) std::copy_n(x.data() + t * in, in, wide.data() + t * padded);
      for (const Isa isa : supported_isas()) {
        for (const Activations activations : {Activations::f32, Activations::int8}) {
          const Call call{.isa = isa, .activations = activations};
          REQUIRE(same_bits(product(ragged, x, call), product(whole, wide, call)));
        }
      }
    }
  }
}

TEST_CASE("linear: no tokens, no work", "[kernels]") {
  const PackedMatrix<All> w = pack<All>(encode<All>(3, 20, 32, normal(20 * 32, 11)));
  const std::vector<float> y = product(w, {}, {.activations = Activations::int8, .before = 3.0f});
  CHECK(y == std::vector<float>(20, 3.0f));
}

TEST_CASE("linear: a broken activation breaks its own token's outputs", "[kernels]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const Dim out = 33, in = 96;
  const Dim tokens = GENERATE(6, 8, 35);
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    std::vector<float> values = normal(out * in, 12);
    for (Dim k = 0; k < in; ++k) values[static_cast<std::size_t>(k)] = 0;  // row 0 is all zeros
    const PackedMatrix<All> w = pack<All>(encode<All>(tag, out, in, values));
    for (const float broken : {inf, -inf, nan}) {
      std::vector<float> x = normal(tokens * in, 13);
      x[2 * 96 + 50] = broken;
      for (const Isa isa : supported_isas()) {
        for (const Activations activations : {Activations::f32, Activations::int8}) {
          const std::vector<float> y = product(w, x, {.isa = isa, .activations = activations});
          for (Dim t = 0; t < tokens; ++t) {
            Dim finite = 0;
            for (Dim r = 0; r < out; ++r)
              finite += std::isfinite(y[static_cast<std::size_t>(t * out + r)]) ? 1 : 0;
            INFO("format " << tag << ", " << name_of(isa) << ", token " << t);
            REQUIRE(finite == (t == 2 ? 0 : out));
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("linear: a format that only encodes and decodes works", "[kernels]", Offset<1>,
                   Offset<7>, Offset<64>, Offset<100>, Offset<256>, Offset<1000>) {
  using Formats = AnyOf<Q8_0, TestType>;
  for (const Dim in : {1, 30, 64, 172, 1100}) {
    const Dim out = 40, tokens = 5;
    const FileMatrix w = encode<Formats>(1, out, in, normal(out * in, 14));
    const PackedMatrix<Formats> packed = pack<Formats>(w, 2);
    CHECK(packed.bytes() == w.bytes.size());
    std::vector<float> row(static_cast<std::size_t>(in));
    packed.decode_row(39, row.data());
    CHECK(same_bits(row, std::vector<float>(w.values.end() - in, w.values.end())));
    const std::vector<float> x = normal(tokens * in, 15);
    std::vector<float> expected;
    for (Dim t = 0; t < tokens; ++t) {
      for (Dim r = 0; r < out; ++r) {
        float acc = 0;
        for (Dim k = 0; k < in; ++k) {
          acc = std::fma(w.values[static_cast<std::size_t>(r * in + k)],
                         x[static_cast<std::size_t>(t * in + k)], acc);
        }
        expected.push_back(acc);
      }
    }
    for (const Isa isa : supported_isas()) {
      const Call call{.isa = isa, .activations = Activations::int8, .threads = 2};
      INFO(name_of(isa) << ", rows of " << in);
      REQUIRE(same_bits(head(product(packed, x, call), tokens * out), expected));
    }
  }
}
