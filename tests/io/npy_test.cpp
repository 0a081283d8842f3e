// NumPy arrays: NumPy's own files, our files, and files that lie.
#include <tenon/io/npy.hpp>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "io/gguf_bytes.hpp"
#include "shared_data.hpp"

using namespace tenon;
using test::error_of;
using test::missing;

namespace {

NpyArray parsed(const std::string& file) {
  return npy_from_bytes(test::GgufBytes::to_bytes(file), "x.npy");
}
std::string refusal(const std::string& file) {
  return error_of<LoadError>([&] { parsed(file); });
}
// A file with this header, padded as NumPy does, and `values` floats.
std::string file_of(std::string header, std::size_t values) {
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) +
         test::raw(static_cast<std::uint16_t>(header.size())) + header +
         std::string(4 * values, '\0');
}
std::string shape_file(const std::string& shape, std::size_t values) {
  return file_of("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", values);
}
using Shape = std::vector<Dim>;

}  // namespace

TEST_CASE("NumPy's own files read, and written again are the same file") {
  for (const auto& [name, shape, first] :
       {std::tuple{"models/expected/stories260K_logits_0.npy", Shape{34, 512}, -6.2229147f},
        std::tuple{"models/expected/stories260K_story4k_nll.npy", Shape{}, 0.0f},
        std::tuple{"models/trained/story-cla/logits.npy", Shape{}, 0.0f}}) {
    const auto path = shared_file(name);
    if (path.empty()) return;
    INFO(name);
    const NpyArray array = read_npy(path);
    if (!shape.empty()) {
      CHECK(array.shape == shape);
      CHECK(array.values[0] == first);
    }
    std::ostringstream out;
    if (array.shape.size() == 2) {
      write_npy(out, matrix(array.values.data(), array.shape[0], array.shape[1]));
    } else {
      write_npy(out, array.values);
    }
    CHECK((out.str() == test::read_file(path)));
  }
}

TEST_CASE("arrays round-trip through files") {
  const test::TemporaryFolder folder;
  const std::vector<float> values{1.5f, -2.0f, 3.25f, 0.0f, 1e-40f, 1e38f};
  write_npy(folder / "matrix.npy", matrix(values.data(), 2, 3));
  write_npy(folder / "vector.npy", values);
  write_npy(folder / "empty.npy", std::span<const float>());
  write_npy(folder / "rows.npy", matrix<const float>(nullptr, 0, 5));
  CHECK(read_npy(folder / "matrix.npy").shape == Shape{2, 3});
  CHECK(read_npy(folder / "matrix.npy").values == values);
  CHECK(read_npy(folder / "vector.npy").shape == Shape{6});
  CHECK(read_npy(folder / "vector.npy").values == values);
  CHECK(read_npy(folder / "empty.npy").shape == Shape{0});
  CHECK(read_npy(folder / "rows.npy").shape == Shape{0, 5});
  CHECK(folder.entries() == 4);
  // What numpy.save(f, numpy.array([1.5], '<f4')) writes.
  std::ostringstream out;
  write_npy(out, std::span(values).first(1));
  CHECK(out.str() == shape_file("(1,)", 0) + test::raw(1.5f));
}

TEST_CASE("headers may be spelled differently") {
  CHECK(parsed(file_of("{'shape':(2,3),'fortran_order':False,'descr':'<f4'}", 6)).shape ==
        Shape{2, 3});
  CHECK(
      parsed(file_of("  { 'descr' : '<f4' , 'shape' : ( 2 , 3 , ) , 'fortran_order' : False } ", 6))
          .shape == Shape{2, 3});
  CHECK(parsed(shape_file("(0, 9223372036854775807)", 0)).values.empty());
}

TEST_CASE("files that are not such arrays are refused") {
  CHECK(missing(refusal(""), {"x.npy", "magic"}) == "");
  CHECK(missing(refusal("\x93NUMPY\2" + std::string(100, '\0')), {"format 1.0"}) == "");
  CHECK(missing(refusal("GGUFGGUFGGUF"), {"format 1.0", "GGUFGGUF"}) == "");
  CHECK(missing(refusal(file_of("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 2)),
                {"'<f4'", "'<f8'"}) == "");
  CHECK(missing(refusal(file_of("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 1)),
                {"'<f4'"}) == "");
  CHECK(missing(refusal(file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", 1)),
                {"False", "True"}) == "");
  for (const std::string shape : {"()", "(1)", "(,)", "1", "(1, 1, 1)", "(-1,)", "(1.5,)",
                                  "(99999999999999999999,)", "(1", "[1,]"}) {
    INFO(shape);
    CHECK(missing(refusal(shape_file(shape, 1)), {"x.npy", "header"}) == "");
  }
  for (const std::string header :
       {"", "{}", "{'descr': '<f4'}", "{'shape': (1,), 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}"}) {
    INFO(header);
    CHECK(missing(refusal(file_of(header, 1)), {"x.npy", "header"}) == "");
  }
}

TEST_CASE("values must be exactly those of the shape") {
  for (const auto& [shape, values] :
       {std::pair{"(2, 3)", 5}, std::pair{"(2, 3)", 7}, std::pair{"(0, 3)", 1},
        std::pair{"(3, 0)", 1}, std::pair{"(4,)", 3}, std::pair{"(0,)", 1},
        std::pair{"(9223372036854775807, 2)", 0}, std::pair{"(4611686018427387904, 4)", 0},
        std::pair{"(4611686018427387905, 4)", 1}, std::pair{"(4, 4611686018427387905)", 1}}) {
    INFO(shape);
    CHECK(missing(refusal(shape_file(shape, static_cast<std::size_t>(values))),
                  {"x.npy", "values", std::to_string(4 * values)}) == "");
  }
  const std::string whole = shape_file("(2, 3)", 6);
  CHECK(parsed(whole).values.size() == 6);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) CHECK(refusal(whole.substr(0, cut)) != "");
  CHECK(refusal(whole + "x") != "");
}
