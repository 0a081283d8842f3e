// Writes a model as a GGUF file or a Hugging Face folder; on the way its cache can be made smaller.
#include <algorithm>
#include <iostream>
#include <optional>
#include <tenon/compress/to_cla.hpp>
#include <tenon/compress/to_gqa.hpp>
#include <tenon/compress/to_mla.hpp>
#include <tenon/compress/to_window.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/io/hugging_face_writer.hpp>
#include <tenon/io/mapped_file.hpp>
#include <tenon/io/replace_file.hpp>
#include <tenon/text/tokenizer.hpp>
#include <tenon/zoo/llama.hpp>
#include <tenon/zoo/registry.hpp>
#include <vector>

#include "command_line.hpp"

namespace {

struct Options {
  std::string in, out, method, text_file;
  std::vector<std::int64_t> numbers;
  int threads = 0;
  bool dequantize = false;
};

// A text in two parts: the vectors of the first show the errors of layers, and the second is
// predicted.
struct Text {
  std::vector<tenon::Token> first, second;
  std::optional<tenon::Token> bos;
};

Text read_text(const std::string& path, const tenon::Tokenizer& tokenizer) {
  const tenon::MappedFile file(path);
  const auto bytes = file.bytes();
  const auto ids = tokenizer.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                    {.bos = false, .eos = false});
  constexpr std::size_t most = 512, least = 8;
  if (ids.size() < least) {
    tenon::fail<tenon::RequestError>("the text to measure on must have at least ", least,
                                     " tokens, it has ", ids.size(), "; give a longer one");
  }
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>((std::min)(ids.size() / 4, most));
  return {{ids.begin(), middle}, {middle, ids.end()}, tokenizer.bos()};
}

// The inputs of the layers' attention, of a plain Llama; of others errors are those of weights.
std::optional<tenon::MixerInputs> inputs_of(const tenon::TensorSource& file, const Text& text,
                                            tenon::Executor& executor) {
  using Attention =
      tenon::Gqa<tenon::GqaSpec{}, tenon::Causal, tenon::Rope, tenon::Contiguous<tenon::F32>>;
  using Listening = tenon::Decoder<
      tenon::Kinds<tenon::Block<tenon::Recorded<Attention>, tenon::SwiGlu, tenon::RmsNorm>>,
      tenon::Uniform{}, tenon::zoo::WeightFormats>;
  const tenon::ConfigStorage storage(file);
  const tenon::ModelConfig config = storage.view();
  if (config.architecture != "llama" || config.number_or("expert_count", 0) != 0 ||
      tenon::SlidingWindow::fits(config, 0)) {
    return std::nullopt;
  }
  const auto model = Listening::bind(file, executor);
  auto session = model.open({.context = static_cast<int>(text.first.size())},
                            {.activations = tenon::Activations::f32, .executor = &executor});
  return tenon::record_inputs(session, model.layers(), model.width(), text.first);
}

tenon::Conversion converted(const Options& o, const tenon::TensorSource& file,
                            const tenon::MixerInputs* inputs) {
  const auto count = o.numbers.size();
  const auto number = [&](std::size_t i) {
    constexpr std::int64_t most = 1 << 30;  // above what any of these may be
    return static_cast<int>(std::clamp(o.numbers[i], -most, most + 1));
  };
  const auto needs = [&](std::size_t least, std::size_t most, std::string_view what) {
    if (count >= least && count <= most) return;
    tenon::fail<tenon::RequestError>(o.method, " must be given ", what, ", it is given ", count,
                                     " numbers; see --help");
  };
  if (o.method == "gqa") {
    needs(1, 1, "the number of key/value heads");
    return tenon::to_gqa(file, number(0), tenon::HeadPooling::mean, inputs);
  }
  if (o.method == "cla") {
    needs(1, 1, "the number of layers that share keys and values");
    return tenon::to_cla(file, number(0), tenon::LayerPooling::owner, inputs);
  }
  if (o.method == "window") {
    needs(1, 2, "the window and, or not, the number of sinks");
    return tenon::to_window(file, number(0), count > 1 ? number(1) : 0);
  }
  if (o.method == "mla") {
    needs(1, 2, "the latent's rank and, or not, how many values of each key keep turning");
    return tenon::to_mla(file, number(0), count > 1 ? number(1) : tenon::dyn, inputs);
  }
  tenon::fail<tenon::RequestError>("the method must be gqa, cla, window or mla, it is \"",
                                   tenon::printable(o.method), "\"; see --help");
}

// A file when the name says so, else a folder.
void write(const Options& o, const tenon::TensorSource& source) {
  if (o.out.ends_with(".gguf")) {
    tenon::write_gguf(o.out, source.metadata(), source.tensors());
  } else {
    tenon::write_hugging_face(o.out, source, {.dequantize = o.dequantize});
    if (!source.metadata().contains("tokenizer.huggingface.json") &&
        !source.metadata().contains("tokenizer.sentencepiece.model")) {
      std::cerr << "convert: " << o.in
                << " has no tokenizer.json, so the folder has no tokenizer; copy the files "
                   "tokenizer.json and tokenizer_config.json of the original model into it\n";
    }
  }
}

void convert(const Options& o) {
  const auto checkpoint = tenon::open_checkpoint(o.in);
  const tenon::TensorSource& file = *checkpoint;
  if (o.out.ends_with(".gguf")) {
    tenon::check_replaceable(o.out);
  } else {
    tenon::check_writable_folder(o.out);
  }
  if (o.method.empty()) {
    if (!o.text_file.empty()) {
      tenon::fail<tenon::RequestError>(
          "--text must come with a METHOD whose errors it measures, "
          "none is given; see --help");
    }
    return write(o, file);
  }
  tenon::ThreadTeam team(o.threads);
  std::optional<Text> text;
  std::optional<tenon::MixerInputs> inputs;
  if (!o.text_file.empty()) {
    text = read_text(o.text_file, tenon::Tokenizer::from(file));
    inputs = inputs_of(file, *text, team);
  }
  tenon::Conversion made = converted(o, file, inputs ? &*inputs : nullptr);
  if (text) {
    const auto open = [&](const tenon::TensorSource& source) {
      return tenon::zoo::All::load(source, team)
          .open({.context = 256, .step_tokens = 256},
                {.cache = "f32", .activations = tenon::Activations::f32, .executor = &team});
    };
    auto before = open(file), after = open(made.source);
    made.report.text =
        tenon::divergence(before, after, text->second, {.window = 255, .bos = text->bos});
  }
  write(o, made.source);
  tenon::print(std::cout, made.report);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Writes a model as a GGUF file or a Hugging Face folder. A METHOD makes its cache smaller on "
      "the way, and what that costs is printed.\n\n"
      "  gqa HEADS           mean-pools keys and values to so many heads\n"
      "  cla LAYERS          runs of so many layers share keys and values\n"
      "  window SIZE SINKS   attention to the last SIZE tokens and the first SINKS (0)\n"
      "  mla RANK PART       latents of RANK values; PART values of each key keep turning (all)\n",
      "convert");
  app.add_option("IN", o.in, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("OUT", o.out, "NAME.gguf: the file to write; else the folder")->required();
  app.add_option("METHOD", o.method, "gqa, cla, window or mla; without it nothing is changed");
  app.add_option("NUMBERS", o.numbers, "its numbers, as above")->expected(0, 2);
  app.add_option("--text", o.text_file,
                 "measure on this file: errors of layers on its first quarter, at most 512 tokens, "
                 "divergence and perplexity on the rest");
  app.add_flag("--dequantize", o.dequantize, "to a folder: write tensors in block formats as f32");
  app.add_option("--threads", o.threads, "0: as many as this process may use")
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { convert(o); });
}
