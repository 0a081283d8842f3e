// Tells one beginning and several endings: branches [MODEL [PROMPT]]. The beginning is computed
// once; its pages are shared by all endings until one of them writes.
#include <iostream>
#include <tenon/io/checkpoint.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/llama.hpp>

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/story.gguf";
  if (path == "--help") {
    std::cout << "usage: branches [MODEL [PROMPT]]\n";
    return 0;
  }
  const auto checkpoint = tenon::open_checkpoint(path);
  const tenon::TensorSource& file = *checkpoint;
  const auto tokenizer = tenon::Tokenizer::from(file);
  const auto prompt = tokenizer.encode(argc > 2 ? argv[2] : "Once upon a time, there was a dog");

  // [fork]
  using Branching = tenon::zoo::Llama<tenon::Paged<tenon::F16, 16>>;
  const auto model = Branching::bind(file);
  auto session = model.open({.seqs = 2, .context = 256});  // room for two sequences

  const std::span<const tenon::Token> tokens = prompt;
  const tenon::SeqId beginning = session.open();
  prefill(session, beginning, tokens.first(tokens.size() - 1), {});  // computed once
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const tenon::SeqId ending = session.fork(beginning);  // shares its rows
    tenon::GenerateOptions options;
    options.max_tokens = 40;
    options.sampling = {.temperature = 0.8, .seed = seed};
    const auto told = generate(session, ending, tokens.last(1), options);
    std::cout << seed << ": " << tokenizer.decode(told.ids) << '\n';
    session.close(ending);
  }
  // [fork]
} catch (const tenon::Error& error) {
  std::cerr << "branches: " << error.what() << '\n';
  return 1;
}
