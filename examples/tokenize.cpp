// Text to token ids with a model's tokenizer, or back.
#include <iostream>
#include <iterator>
#include <string>
#include <tenon/io/checkpoint.hpp>
#include <tenon/text/tokenizer.hpp>

#include "command_line.hpp"
#include "token_list.hpp"

int main(int argc, char** argv) {
  std::string model, text;
  bool decode = false, special = false;
  CLI::App app("Prints the token ids of a text, or the text of ids.", "tokenize");
  app.add_option("MODEL", model, "a .gguf file or a Hugging Face folder")->required();
  const auto* given = app.add_option("TEXT", text,
                                     "the text, or ids separated by commas with --decode; without "
                                     "it all of the standard input, to its last line's end");
  app.add_flag("--decode", decode, "TEXT is ids; print their text");
  app.add_flag("--special", special, "control tokens in the text count as such, and are shown");
  return run_program(app, argc, argv, [&] {
    const auto file = tenon::open_checkpoint(model);
    const auto tokenizer = tenon::Tokenizer::from(*file);
    if (given->empty()) text.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (decode) {
      if (given->empty() && text.ends_with('\n')) text.pop_back();
      std::cout << tokenizer.decode(token_list(text), {.special = special}) << '\n';
    } else {
      std::cout << token_text(
                       tokenizer.encode(text, {.bos = {}, .eos = {}, .parse_special = special}))
                << '\n';
    }
  });
}
