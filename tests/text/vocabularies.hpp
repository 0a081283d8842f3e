#pragma once
// Vocabularies for the tokenizer tests: from reference files, and made by hand.
#include <tenon/io/gguf.hpp>
#include <tenon/text/tokenizer.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "shared_data.hpp"

namespace vocabularies {

using namespace tenon;

inline MetaValue array_of(std::vector<std::string> values) {
  return {MetaType::array, MetaType::string, std::move(values)};
}
inline MetaValue array_of(std::vector<double> values) {
  return {MetaType::array, MetaType::f32, std::move(values)};
}
inline MetaValue array_of(std::vector<std::int64_t> values) {
  return {MetaType::array, MetaType::i32, std::move(values)};
}

struct Piece {
  std::string text;
  double score = 0;
  TokenKind kind = TokenKind::normal;
};

// <unk>, <s>, </s>: ids 0, 1, 2.
inline std::vector<Piece> marks() {
  return {{"<unk>", 0, TokenKind::unknown},
          {"<s>", 0, TokenKind::control},
          {"</s>", 0, TokenKind::control}};
}
// The marks and, as ids 3 to 258, the byte pieces.
inline std::vector<Piece> marks_and_bytes() {
  std::vector<Piece> pieces = marks();
  constexpr char hex[] = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pieces.push_back({{'<', '0', 'x', hex[byte / 16], hex[byte % 16], '>'}, 0, TokenKind::byte});
  }
  return pieces;
}
inline std::vector<Piece> operator+(std::vector<Piece> a, const std::vector<Piece>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Metadata metadata_of(const std::vector<Piece>& pieces) {
  std::vector<std::string> texts;
  std::vector<double> scores;
  std::vector<std::int64_t> kinds;
  for (const Piece& piece : pieces) {
    texts.push_back(piece.text);
    scores.push_back(piece.score);
    kinds.push_back(static_cast<std::int64_t>(piece.kind));
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", "llama");
  metadata.set("tokenizer.ggml.tokens", array_of(texts));
  metadata.set("tokenizer.ggml.scores", array_of(scores));
  metadata.set("tokenizer.ggml.token_type", array_of(kinds));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  metadata.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.add_bos_token", false);
  return metadata;
}
inline Tokenizer tokenizer_of(const std::vector<Piece>& pieces, bool space_prefix = true) {
  Metadata metadata = metadata_of(pieces);
  metadata.set("tokenizer.ggml.add_space_prefix", space_prefix);
  return Tokenizer::from(metadata);
}

// The tokenizer of a reference file, or none where the file is absent.
inline std::optional<Tokenizer> reference(const std::string& name) {
  const std::filesystem::path file = shared_file(name);
  if (file.empty()) return std::nullopt;
  return Tokenizer::from(Gguf::open(file).metadata());
}
inline std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The texts of a vocabulary of llama.cpp, and the ids that it gives them; none where they are
// absent.
struct GoldenLines {
  std::vector<std::string> texts;
  std::vector<std::vector<Token>> ids;
};
inline GoldenLines golden_lines(const std::string& name) {
  const auto input = shared_file(name + ".inp");
  const auto output = shared_file(name + ".out");
  GoldenLines lines;
  if (input.empty() || output.empty()) return lines;
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::string rest = read(input);
  for (std::size_t at = 0; (at = rest.find(separator)) != std::string::npos;) {
    lines.texts.push_back(rest.substr(0, at));
    rest.erase(0, at + separator.size());
  }
  lines.texts.push_back(rest);
  std::ifstream all(output);
  for (std::size_t row = 0; row < lines.texts.size(); ++row) {
    std::string line;
    std::getline(all, line);  // the last text is empty and has no line
    std::istringstream numbers(line);
    lines.ids.emplace_back();
    for (Token id = 0; numbers >> id;) lines.ids.back().push_back(id);
  }
  return lines;
}

// The message of the E that f() throws; "" when it throws none.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace vocabularies
