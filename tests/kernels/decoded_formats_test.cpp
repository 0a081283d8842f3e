// Formats without a tile layout are decoded on the way: products are those of the decoded values.
#include "catch.hpp"
#include "kernels/weights.hpp"
#include "tenon/kernels/every_format.hpp"

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
