// A program that does not link tenon::text: SentencePiece BPE works, everything else says what to
// link.
#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

#if defined(TENON_WITH_TEXT)
#error "this test is about programs without tenon::text"
#endif

namespace {

using namespace vocabularies;

}  // namespace

TEST_CASE("without tenon::text") {
  const Tokenizer tokenizer = tokenizer_of(marks_and_bytes() + std::vector<Piece>{{"a", -1}});
  CHECK(tokenizer.decode(tokenizer.encode("a b")) == "a b");
  Metadata metadata = metadata_of(marks_and_bytes());
  metadata.set("tokenizer.ggml.merges", array_of(std::vector<std::string>{}));
  for (const char* kind : {"gpt2", "bert"}) {
    metadata.set("tokenizer.ggml.model", kind);
    INFO(kind);
    CHECK(contains(message_of<LoadError>([&] { Tokenizer::from(metadata); }),
                   "link the CMake target tenon::text"));
  }
  Metadata folder;
  folder.set("tokenizer.huggingface.json", "{}");
  CHECK(contains(message_of<LoadError>([&] { Tokenizer::from(folder); }),
                 "link the CMake target tenon::text"));
}
