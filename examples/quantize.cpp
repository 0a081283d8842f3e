// Rewrites the matrices of a model file in another format.
#include <deque>
#include <iostream>
#include <tenon/io/gguf.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/quant/gguf_formats.hpp>

#include "command_line.hpp"

namespace {

using Readable = tenon::AnyOf<tenon::F32, tenon::F16, tenon::Bf16>;
using Writable = tenon::GgufFormats;

// The number by which GGUF metadata names the format that most matrices have.
std::uint32_t file_type(std::string_view format) {
  constexpr std::pair<std::string_view, std::uint32_t> types[] = {
      {"f32", 0},   {"f16", 1},   {"q4_0", 2},    {"q4_1", 3},  {"q8_0", 7},
      {"q5_0", 8},  {"q5_1", 9},  {"q2_K", 10},   {"q3_K", 11}, {"q4_K", 14},
      {"q5_K", 16}, {"q6_K", 18}, {"iq4_nl", 25}, {"bf16", 32}, {"mxfp4", 38}};
  for (const auto& [name, number] : types) {
    if (name == format) return number;
  }
  return 0;
}

// Row r of a matrix stored in the readable format with that tag, as floats.
void decode(int tag, const tenon::TensorInfo& tensor, tenon::Dim r, std::vector<float>& row) {
  const auto columns = static_cast<tenon::Dim>(row.size());
  tenon::FormatList<Readable>::visit(tag, [&]<class From>(From) {
    const std::size_t at = static_cast<std::size_t>(r) * tenon::row_bytes<From>(columns);
    From::decode(tensor.data.data() + at, columns, row.data());
  });
}

// Matrices whose rows fill whole blocks are converted; everything else stays as it is.
void quantize(const std::string& in, const std::string& out, const std::string& format) {
  const int tag = tenon::tag_of_name<Writable>(format);
  if (tag < 0) {
    tenon::fail<tenon::RequestError>("the format must be one of ",
                                     tenon::FormatList<Writable>::names(), ", it is \"",
                                     tenon::printable(format), "\"");
  }
  const auto file = tenon::Gguf::open(in);
  std::vector<tenon::TensorInfo> tensors(file.tensors().begin(), file.tensors().end());
  std::deque<std::vector<std::byte>> converted;
  tenon::FormatList<Writable>::visit(tag, [&]<class To>(To) {
    for (tenon::TensorInfo& tensor : tensors) {
      const int source = tenon::tag_of_ggml_type<Readable>(tensor.ggml_type);
      const bool matrix = tensor.shape.size() == 2 && tensor.shape[1] % To::block == 0;
      if (!matrix || source < 0) {
        if (tensor.shape.size() > 1) std::cout << tensor.name << ": kept as it is\n";
        continue;
      }
      const tenon::Dim rows = tensor.shape[0], columns = tensor.shape[1];
      std::vector<float> row(static_cast<std::size_t>(columns));
      auto& bytes =
          converted.emplace_back(static_cast<std::size_t>(rows) * tenon::row_bytes<To>(columns));
      for (tenon::Dim r = 0; r < rows; ++r) {
        decode(source, tensor, r, row);
        To::encode(row.data(), columns,
                   bytes.data() + static_cast<std::size_t>(r) * tenon::row_bytes<To>(columns));
      }
      tensor.ggml_type = To::ggml_type;
      tensor.data = bytes;
    }
  });
  tenon::Metadata metadata = file.metadata();
  metadata.set("general.file_type", file_type(format));
  metadata.set("general.quantization_version", std::uint32_t{2});
  tenon::write_gguf(out, metadata, tensors);
}

}  // namespace

int main(int argc, char** argv) {
  std::string in, out, format;
  CLI::App app("Rewrites the matrices of a model file in another format.", "quantize");
  app.add_option("IN", in, "a .gguf file")->required();
  app.add_option("OUT", out, "the .gguf file to write")->required();
  app.add_option("FORMAT", format, "one of " + tenon::FormatList<Writable>::names())->required();
  return run_program(app, argc, argv, [&] { quantize(in, out, format); });
}
