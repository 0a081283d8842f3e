// Rewrites the matrices of a model in another format.
#include <iostream>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/io/quantized_source.hpp>
#include <tenon/quant/named_formats.hpp>

#include "command_line.hpp"

namespace {

// Matrices whose rows fill whole blocks are converted; everything else stays as it is.
void quantize(const std::string& in, const std::string& out, const std::string& format) {
  const tenon::WeightFormat& to = tenon::find_weight_format(format);
  const auto file = tenon::open_checkpoint(in);
  const tenon::QuantizedSource quantized(*file, to);
  for (const tenon::TensorInfo& tensor : quantized.tensors()) {
    if (tensor.shape.size() > 1 && tensor.ggml_type != to.ggml_type) {
      std::cout << tensor.name << ": kept as it is\n";
    }
  }
  tenon::write_gguf(out, quantized.metadata(), quantized.tensors());
}

}  // namespace

int main(int argc, char** argv) {
  std::string in, out, format;
  CLI::App app("Rewrites the matrices of a model in another format.", "quantize");
  app.add_option("IN", in, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("OUT", out, "the .gguf file to write")->required();
  app.add_option("FORMAT", format, "one of " + tenon::weight_format_names())->required();
  return run_program(app, argc, argv, [&] { quantize(in, out, format); });
}
