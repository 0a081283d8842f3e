// Repacking weights keeps every value and costs no byte more than the file, rows rounded up to 16.
#include "catch.hpp"
#include "kernels/weights.hpp"

using namespace weights;

TEST_CASE("packed: decode_row gives what the format decodes", "[kernels]") {
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    for (const Dim out : {1, 15, 16, 17, 172}) {
      for (const Dim in : {32, 64, 96, 320, 768}) {
        const FileMatrix w = tag < first_blocks ? encode<All>(tag, out, in, normal(out * in, 1))
                                                : random_blocks(tag, out, in, 1);
        for (const int threads : {1, 3}) {
          const PackedMatrix<All> packed = pack<All>(w, threads);
          std::vector<float> rows(w.values.size());
          for (Dim r = 0; r < out; ++r) packed.decode_row(r, rows.data() + r * in);
          INFO("format " << tag << ", " << out << " x " << in);
          REQUIRE(same_bits(rows, w.values));
        }
      }
    }
  }
}

TEST_CASE("packed: dense rows of any length", "[kernels]") {
  for (const int tag : {0, 1, 2}) {
    for (const Dim in : {1, 15, 33, 63, 64, 65, 172}) {
      const FileMatrix w = encode<All>(tag, 19, in, normal(19 * in, 2));
      const PackedMatrix<All> packed = pack<All>(w);
      std::vector<float> rows(w.values.size());
      for (Dim r = 0; r < 19; ++r) packed.decode_row(r, rows.data() + r * in);
      REQUIRE(same_bits(rows, w.values));
    }
  }
}

TEST_CASE("packed: bytes are those of the file", "[kernels]") {
  for (int tag = 0; tag < FormatList<All>::size; ++tag) {
    // Scales of IQ4_XS lie in two whole words, those of NVFP4 as halves.
    const std::size_t more = tag == tag_of_name<All>("iq4_xs")  ? 68
                             : tag == tag_of_name<All>("nvfp4") ? 9
                                                                : 0;
    const auto of_file = [&](std::size_t bytes) { return bytes + (more > 0 ? bytes / more : 0); };
    const FileMatrix w = encode<All>(tag, 48, 96, normal(48 * 96, 3));
    CHECK(pack<All>(w).bytes() == of_file(w.bytes.size()));
    const FileMatrix ragged = encode<All>(tag, 33, 96, normal(33 * 96, 3));
    CHECK(pack<All>(ragged).bytes() == of_file(ragged.bytes.size() / 33 * 48));
    CHECK(pack<All>(ragged).out() == 33);
    CHECK(pack<All>(ragged).in() == 96);
    CHECK(pack<All>(ragged).tag() == tag);
  }
}

TEST_CASE("packed: bytes that are not the matrix are refused", "[kernels]") {
  Backwards team(1);
  const std::vector<std::byte> bytes(100);
  const auto pack_as = [&](int tag, Dim out, Dim in) {
    return PackedMatrix<All>::pack(tag, bytes, out, in, team);
  };
  CHECK_NOTHROW(pack_as(0, 5, 5));
  CHECK_THROWS_WITH(
      pack_as(0, 5, 6),
      "the f32 weights of 5 rows of 6 values must be 5 x ceil(6 / 1) x 4 bytes, they are "
      "100; check the tensor's shape and type against the model's sizes");
  CHECK_THROWS_AS(pack_as(0, 4, 6), ShapeError);
  CHECK_THROWS_AS(pack_as(0, 0, 5), ShapeError);
  CHECK_THROWS_AS(pack_as(0, 5, 0), ShapeError);
  CHECK_THROWS_AS(pack_as(0, -5, -5), ShapeError);
  CHECK_THROWS_AS(pack_as(3, 5, 32), ShapeError);
  // Products that wrap around 2^64 must not pass for small ones.
  CHECK_THROWS_AS(pack_as(0, Dim{1} << 62, 25), ShapeError);
  CHECK_THROWS_AS(pack_as(1, (Dim{1} << 62) + 25, 4), ShapeError);
  CHECK_THROWS_AS(pack_as(0, 25, (Dim{1} << 62) + 1), ShapeError);
}
