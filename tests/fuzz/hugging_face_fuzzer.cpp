// Hostile tokenizer.json files and texts. Loading may end in a LoadError and nothing else; a
// tokenizer that has loaded encodes every text (or says that an expression of the file takes too
// long) and decodes what it encoded.
//
// Input: the file up to the first NUL, then the text.
#include <tenon/text/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  using namespace tenon;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const std::string_view text = cut == std::string_view::npos ? "a b" : input.substr(cut + 1);
  Metadata metadata;
  metadata.set("tokenizer.huggingface.json", input.substr(0, cut));
  try {
    const Tokenizer tokenizer = Tokenizer::from(metadata);
    for (const bool special : {false, true}) {
      const auto ids = tokenizer.encode(text.substr(0, 256), {.parse_special = special});
      for (const Token id : ids) {
        if (id < 0 || id >= tokenizer.vocab()) std::abort();
      }
      tokenizer.decode(ids, {.special = special});
    }
  } catch (const LoadError&) {
  } catch (const TokenizerError&) {}
  return 0;
}
