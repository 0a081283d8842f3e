#pragma once
// Expected values of the reference models, and running a model to compare with them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared_data.hpp"
#include "tenon/io/npy.hpp"
#include "tenon/model/concepts.hpp"

namespace reference {

struct Logits {
  tenon::Dim rows = 0, columns = 0;
  std::vector<float> values;  // [rows, columns]
  const float* row(tenon::Dim i) const { return values.data() + i * columns; }
};

inline nlohmann::json json_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

inline Logits npy(const std::filesystem::path& path) {
  auto array = tenon::read_npy(path);
  REQUIRE(array.shape.size() == 2);
  return {array.shape[0], array.shape[1], std::move(array.values)};
}

// One float32 tensor of a safetensors file that the reference wrote (trusted data, no checks).
inline Logits safetensor(const std::filesystem::path& path, const std::string& name) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t header_bytes = 0;
  in.read(reinterpret_cast<char*>(&header_bytes), 8);
  std::string header(header_bytes, ' ');
  in.read(header.data(), static_cast<std::streamsize>(header_bytes));
  const auto entry = nlohmann::json::parse(header).at(name);
  REQUIRE(entry.at("dtype") == "F32");
  Logits out{entry.at("shape").at(0), entry.at("shape").at(1), {}};
  out.values.resize(static_cast<std::size_t>(out.rows * out.columns));
  in.seekg(static_cast<std::streamoff>(8 + header_bytes +
                                       entry.at("data_offsets").at(0).get<std::uint64_t>()));
  in.read(reinterpret_cast<char*>(out.values.data()),
          static_cast<std::streamsize>(out.values.size() * 4));
  REQUIRE(in.good());
  return out;
}

// Logits after every one of `tokens`, fed in chunks to a fresh sequence of the session.
template <tenon::ModelSession S>
Logits logits(S& session, const std::vector<tenon::Token>& tokens, int chunk) {
  Logits out{static_cast<tenon::Dim>(tokens.size()), session.vocab(), {}};
  out.values.resize(static_cast<std::size_t>(out.rows * out.columns));
  const tenon::SeqId seq = session.open();
  const int total = static_cast<int>(tokens.size());
  for (int at = 0; at < total; at += chunk) {
    const int count = (std::min)(chunk, total - at);
    std::vector<int> want(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) want[static_cast<std::size_t>(i)] = i;
    const std::span<const tenon::Token> some(tokens.data() + at, static_cast<std::size_t>(count));
    session.forward({{&seq, 1}, {&count, 1}, some, {}, {}, want},
                    tenon::matrix(out.values.data() + at * out.columns, count, out.columns), {});
  }
  session.close(seq);
  return out;
}

// The most likely continuation, `count` tokens.
template <tenon::ModelSession S>
std::vector<tenon::Token> greedy(S& session, std::vector<tenon::Token> prompt, std::size_t count) {
  std::vector<tenon::Token> out;
  std::vector<float> row(static_cast<std::size_t>(session.vocab()));
  const tenon::SeqId seq = session.open();
  while (out.size() < count) {
    const int n = static_cast<int>(prompt.size());
    const int last = n - 1;
    session.forward({{&seq, 1}, {&n, 1}, prompt, {}, {}, {&last, 1}},
                    tenon::matrix(row.data(), 1, session.vocab()), {});
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    out.push_back(static_cast<tenon::Token>(best));
    prompt = {out.back()};
  }
  session.close(seq);
  return out;
}

inline double largest_difference(const Logits& a, const Logits& b) {
  REQUIRE(a.rows == b.rows);
  REQUIRE(a.columns == b.columns);
  double worst = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double difference =
        std::fabs(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i]));
    if (!(difference <= worst)) worst = difference;  // a NaN wins
  }
  return worst;
}

inline bool same_bits(const Logits& a, const Logits& b) {
  return a.rows == b.rows && a.columns == b.columns &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

}  // namespace reference
