// Hostile tokenizer.model files and texts. Loading may end in a LoadError and nothing else; a
// tokenizer that has loaded encodes every text and decodes what it encoded.
//
// Input: a byte with the length of the text, the text, then the file.
#include <tenon/text/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 16384) return 0;
  using namespace tenon;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view text = input.substr(0, data[0]);
  Metadata metadata;
  metadata.set("tokenizer.sentencepiece.model", input.substr(text.size()));
  try {
    const Tokenizer tokenizer = Tokenizer::from(metadata);
    const auto ids = tokenizer.encode(text, {.parse_special = true});
    for (const Token id : ids) {
      if (id < 0 || id >= tokenizer.vocab()) std::abort();
    }
    tokenizer.decode(ids, {.special = true});
  } catch (const LoadError&) {}
  return 0;
}
