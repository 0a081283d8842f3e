// Formats without a tile layout are decoded on the way, or packed as another format: products are
// those of the decoded values.
#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/kernels/every_format.hpp"
#include "tenon/quant/iq3_s.hpp"
#include "tenon/quant/q8_sums.hpp"

using namespace weights;

namespace {
// The same numbers as a format that the kernels do not know.
template <class F>
struct Unknown : F {};
using Formats = AnyOf<F32, Unknown<Q5_0>, Unknown<Q4_K>, Unknown<Q6_K>>;
}  // namespace

TEST_CASE("decoded formats: products have the bits of the decoded matrix", "[kernels]") {
  for (int tag = 1; tag < FormatList<Formats>::size; ++tag) {
    REQUIRE(FormatList<Formats>::visit(tag, []<class F>(F) { return !Tiled<F>; }));
    for (const Dim in : {256, 768}) {
      const Dim out = 37;
      const FileMatrix blocks = encode<Formats>(tag, out, in, normal(out * in, 5));
      FileMatrix floats = encode<Formats>(0, out, in, blocks.values);
      REQUIRE(same_bits(floats.values, blocks.values));
      const auto packed = pack<Formats>(blocks, 2), exact = pack<Formats>(floats);
      CHECK(packed.bytes() == blocks.bytes.size());
      std::vector<float> rows(blocks.values.size());
      for (Dim r = 0; r < out; ++r) packed.decode_row(r, rows.data() + r * in);
      CHECK(same_bits(rows, blocks.values));
      for (const Isa isa : supported_isas()) {
        for (const Dim tokens : {1, 2, 7, 65}) {
          const auto x = normal(tokens * in, 6);
          const auto want = product(exact, x, {.isa = isa});
          INFO("format " << tag << ", in " << in << ", tokens " << tokens);
          CHECK(same_bits(product(packed, x, {.isa = isa}), want));
          // Without an integer arithmetic of their own they take float activations as they are.
          CHECK(
              same_bits(product(packed, x, {.isa = isa, .activations = Activations::int8}), want));
        }
      }
    }
  }
}

TEST_CASE("decoded formats: packed as another format, the numbers stay the same", "[kernels]") {
  // The list the matrix is of, and the format of the second list that it must behave like.
  using Stored = AnyOf<F32, IQ3_S, Q8_1, Q8_K>;
  using Like = AnyOf<F32, Q6_K, Q8_0, F32>;
  for (int tag = 1; tag < FormatList<Stored>::size; ++tag) {
    for (const Dim out : {1, 16, 37}) {
      const Dim in = 512;
      // Any bytes: d must be a number, all others are codes.
      FileMatrix blocks = encode<Stored>(tag, out, in, normal(out * in, 8, 0.02f));
      std::mt19937 generator(4);
      FormatList<Stored>::visit(tag, [&]<class F>(F) {
        for (std::size_t i = 0; i < blocks.bytes.size() && F::block > 1; ++i) {
          if (i % F::block_bytes >= 4) {
            blocks.bytes[i] = static_cast<std::byte>(generator() & 255);
          }
        }
      });
      decode<Stored>(blocks);
      const auto packed = pack<Stored>(blocks, 2);
      CHECK(packed.bytes() == PackedMatrix<Like>::packed_bytes(tag, out, in));
      std::vector<float> rows(blocks.values.size());
      for (Dim r = 0; r < out; ++r) packed.decode_row(r, rows.data() + r * in);
      CHECK(same_bits(rows, blocks.values));
      const auto exact = pack<Stored>(encode<Stored>(0, out, in, blocks.values));
      for (const Dim tokens : {1, 5}) {
        const auto x = normal(tokens * in, 9);
        INFO("format " << tag << ", out " << out << ", tokens " << tokens);
        CHECK(same_bits(product(packed, x, {}), product(exact, x, {})));
      }
    }
  }
}
