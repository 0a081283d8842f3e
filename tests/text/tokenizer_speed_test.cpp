// Row 27: encoding takes near-linear time, also where a text has no space to cut it at.
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;

// Keeps what encode() frees: for large blocks the allocator would go to the system each time, and
// this would measure the system's work on pages.
void keep_memory() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const double begin = processor_seconds();
  // Enough repetitions to be well above the clock's resolution.
  const std::size_t repetitions = 1 + 400'000 / text.size();
  for (std::size_t i = 0; i < repetitions; ++i) tokenizer.encode(text);
  return (processor_seconds() - begin) / static_cast<double>(repetitions);
}

std::string repeat(const std::string& unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  text.resize(bytes);
  return text;
}

// time(2n) / time(n), averaged over the doublings from 25k to 400k and over the last two: single
// doublings also show where the working set leaves a cache. Linear time gives 2, quadratic 4. The
// fastest of several runs counts, because other work on the machine only adds time.
double doubling(const Tokenizer& tokenizer, const std::string& unit) {
  double small = 1e9, middle = 1e9, large = 1e9;
  for (int round = 0; round < 5; ++round) {
    small = (std::min)(small, seconds_to_encode(tokenizer, repeat(unit, 25'000)));
    middle = (std::min)(middle, seconds_to_encode(tokenizer, repeat(unit, 100'000)));
    large = (std::min)(large, seconds_to_encode(tokenizer, repeat(unit, 400'000)));
  }
  return (std::max)(std::pow(large / small, 1.0 / 4), std::sqrt(large / middle));
}

// A vocabulary in which runs merge to pieces of up to 64 characters.
Tokenizer runs() {
  std::vector<Piece> pieces = marks_and_bytes();
  double score = 0;
  for (std::size_t n = 1; n <= 64; n *= 2) {
    for (const char c : {'a', '_'}) pieces.push_back({std::string(n, c), score -= 1});
  }
  return tokenizer_of(pieces);
}

}  // namespace

TEST_CASE("row 27: twice the text takes less than 2.6 times as long") {
  keep_memory();
  const Tokenizer own = runs();
  CHECK(doubling(own, "a") < 2.6);
  CHECK(doubling(own, "ab_") < 2.6);
  const auto llama2 = reference("data/tokenizers/ggml-vocab-llama-spm.gguf");
  if (!llama2) return;
  CHECK(doubling(*llama2, "a") < 2.6);
  CHECK(doubling(*llama2, "_") < 2.6);
  CHECK(doubling(*llama2, "{\"key\":[1,23,456,true,null],\"name\":\"value\"}") < 2.6);
}

TEST_CASE("row 27: a megabyte of one character") {
  const std::string text(1'000'000, 'a');
  const auto timed = [&](const Tokenizer& tokenizer) {
    double best = 1e9;
    for (int i = 0; i < 5 && best > 1; ++i) {
      const double begin = processor_seconds();
      tokenizer.encode(text);
      best = (std::min)(best, processor_seconds() - begin);
    }
    return best;
  };
  const Tokenizer own = runs();
  CHECK(timed(own) < 1);
  CHECK(own.encode(text, {.bos = false}).size() == 1'000'000 / 64 + 1);  // and the space in front
  CHECK(own.decode(own.encode(text)) == text);
  const auto llama2 = reference("data/tokenizers/ggml-vocab-llama-spm.gguf");
  if (!llama2) return;
  CHECK(timed(*llama2) < 1);
  CHECK(llama2->decode(llama2->encode(text)) == text);
}

#if TENON_TESTS_WITH_TEXT
namespace {

std::vector<std::pair<std::string, Tokenizer>> every_kind() {
  std::vector<std::pair<std::string, Tokenizer>> all;
  for (const std::string name : {"llama-spm", "gpt-2", "deepseek-coder", "bert-bge"}) {
    if (auto tokenizer = reference("data/tokenizers/ggml-vocab-" + name + ".gguf"))
      all.emplace_back(name, *tokenizer);
  }
  const std::filesystem::path folder =
      std::filesystem::path(TENON_SOURCE_DIR) / "tests/data/tokenizers";
  for (const std::string name : {"llama3", "qwen2", "llama2", "metaspace", "unigram", "falcon"}) {
    Metadata metadata;
    metadata.set("tokenizer.huggingface.json", read(folder / (name + ".json")));
    all.emplace_back(name + ".json", Tokenizer::from(metadata));
  }
  for (const std::string name : {"bpe", "unigram"}) {
    Metadata metadata;
    metadata.set("tokenizer.sentencepiece.model",
                 read(folder / ("sentencepiece-" + name + ".model")));
    all.emplace_back(name + ".model", Tokenizer::from(metadata));
  }
  return all;
}

}  // namespace

TEST_CASE("row 27: a megabyte of one character, in every kind of tokenizer") {
  keep_memory();
  for (const auto& [name, tokenizer] : every_kind()) {
    INFO(name);
    for (const char c : {'a', '_', ' ', '\n', '1'}) {
      const std::string text(1'000'000, c);
      double best = 1e9;
      for (int i = 0; i < 3 && best > 1; ++i) {
        const double begin = processor_seconds();
        tokenizer.encode(text);
        best = (std::min)(best, processor_seconds() - begin);
      }
      INFO("character " << static_cast<int>(c));
      CHECK(best < 1);
    }
  }
}

TEST_CASE("English text: megabytes a second, on one core") {
  keep_memory();
  const auto file = shared_file("data/texts/shakespeare_64k.txt");
  if (file.empty()) return;
  const std::string text = repeat(read(file), 2'000'000);
  for (const auto& [name, tokenizer] : every_kind()) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double begin = processor_seconds();
      tokenizer.encode(text);
      best = (std::min)(best, processor_seconds() - begin);
    }
    const double speed = static_cast<double>(text.size()) / 1e6 / best;
    std::printf("%-22s %6.1f MB/s\n", name.c_str(), speed);
    // The figure holds for real vocabularies; the small ones make several times as many ids.
    const bool real = name.find('.') == std::string::npos;
    INFO(name << ": " << speed << " MB/s");
    if (real) CHECK(speed > 10);
  }
}
#endif
