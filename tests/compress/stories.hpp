#pragma once
// Trained models and texts for tests of conversions.
#include <fstream>
#include <string>
#include <vector>

#include "golden/reference.hpp"
#include "shared_data.hpp"
#include "tenon/compress/divergence.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/model/session_options.hpp"
#include "tenon/text/tokenizer.hpp"

namespace stories {

// The start of a text, without BOS.
inline std::vector<tenon::Token> tokens(const tenon::Tokenizer& tokenizer,
                                        const std::filesystem::path& path, std::size_t bytes) {
  std::ifstream in(path, std::ios::binary);
  std::string text(bytes, ' ');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  REQUIRE(in.gcount() == static_cast<std::streamsize>(bytes));
  return tokenizer.encode(text, {.bos = false, .eos = false});
}

template <class M>
auto open(const M& model) {
  return model.open({.seqs = 1, .context = 512, .step_tokens = 256},
                    {.cache = "f32", .activations = tenon::Activations::f32, .threads = 1});
}

// Logits after each of `ids`, with float caches.
template <class M>
reference::Logits logits_of(const M& model, const std::vector<tenon::Token>& ids) {
  auto session = open(model);
  return reference::logits(session, ids, 64);
}

// As good as any, for models with random weights.
inline std::vector<tenon::Token> some_ids(int count, int vocab) {
  std::vector<tenon::Token> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<tenon::Token>((i * 37 + i * i) % vocab));
  }
  return ids;
}

}  // namespace stories
