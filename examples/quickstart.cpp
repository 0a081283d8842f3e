// Tells a story: quickstart [MODEL [PROMPT]]. The default model is the repository's, found from its
// top folder.
#include <iostream>
#include <tenon/io/checkpoint.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/llama.hpp>

// Every size is part of the type; bind() checks that the file has them. Leave one out, or all, and
// it is read from the file: zoo::Llama<> runs any Llama.
using Story = tenon::zoo::Llama<tenon::Contiguous<tenon::F16>, tenon::Q8_0,
                                tenon::zoo::LlamaSizes{.width = 256,
                                                       .layers = 4,
                                                       .vocab = 1024,
                                                       .heads = 8,
                                                       .kv_heads = 2,
                                                       .head_dim = 32,
                                                       .hidden = 256}>;

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/story.gguf";
  if (path == "--help") {
    std::cout << "usage: quickstart [MODEL [PROMPT]]\n";
    return 0;
  }
  const auto file = tenon::open_checkpoint(path);  // a .gguf file or a Hugging Face folder
  const auto model = Story::bind(*file);
  const auto tokenizer = tenon::Tokenizer::from(*file);

  auto session = model.open({.context = 256});
  tenon::TextOptions options;
  options.generate.max_tokens = 200;
  options.generate.sampling = {.temperature = 0.7, .top_p = 0.95, .seed = 7};
  const std::string prompt = argc > 2 ? argv[2] : "Once upon a time";
  std::cout << prompt;
  generate_text(session, tokenizer, prompt, options,
                [](std::string_view piece) { std::cout << piece << std::flush; });
  std::cout << '\n';
} catch (const tenon::Error& error) {
  std::cerr << "quickstart: " << error.what() << '\n';
  return 1;
}
