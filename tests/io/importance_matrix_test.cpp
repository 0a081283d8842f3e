// Importance matrices in both of their file formats, and files that only look like one.
#include <tenon/io/gguf.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/io/importance_matrix.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "io/gguf_bytes.hpp"

using namespace tenon;
using Catch::Contains;

namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}
struct Entry {
  std::string name;
  std::vector<Dim> shape;
  std::vector<float> values;
};
void write(const std::filesystem::path& path, const std::vector<Entry>& entries) {
  Metadata metadata;
  metadata.set("general.type", "imatrix");
  std::vector<TensorInfo> tensors;
  for (const Entry& entry : entries) {
    tensors.push_back({entry.name, 0, entry.shape, bytes_of(entry.values)});
  }
  write_gguf(path, metadata, tensors);
}
std::string binary(std::int32_t entries, std::string_view name, std::int32_t calls,
                   const std::vector<float>& values) {
  std::string all = test::raw(entries, static_cast<std::int32_t>(name.size()));
  all += name;
  all += test::raw(calls, static_cast<std::int32_t>(values.size()));
  for (const float v : values) all += test::raw(v);
  return all;
}
std::vector<float> found(const ImportanceMatrix& matrix, std::string_view name, Dim matrices,
                         Dim columns, Dim which) {
  const auto all = matrix.find(name, matrices, columns, which);
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("importance: sums over counts, scaled by a power of two") {
  const test::TemporaryFolder folder;
  write(folder / "a", {{"blk.0.attn_q.weight.in_sum2", {1, 4}, {8, 24, 0, 32}},
                       {"blk.0.attn_q.weight.counts", {1, 1}, {2}},
                       {"blk.0.ffn_up_exps.weight.in_sum2", {3, 2}, {3, 5, 0, 0, 1, 7}},
                       {"blk.0.ffn_up_exps.weight.counts", {3, 1}, {4, 0, 8}}});
  const auto matrix = ImportanceMatrix::open(folder / "a");
  CHECK(matrix.size() == 2);
  // Means 4, 12, 0, 16: their mean is 8, so they are divided by 8; 0 becomes a millionth.
  CHECK(found(matrix, "blk.0.attn_q.weight", 1, 4, 0) == std::vector<float>{0.5f, 1.5f, 1e-6f, 2});
  CHECK(found(matrix, "blk.0.ffn_up_exps.weight", 3, 2, 0) == std::vector<float>{0.75f, 1.25f});
  CHECK(found(matrix, "blk.0.ffn_up_exps.weight", 3, 2, 1) == std::vector<float>{1, 1});
  CHECK(found(matrix, "blk.0.ffn_up_exps.weight", 3, 2, 2) == std::vector<float>{0.25f, 1.75f});
  CHECK(matrix.find("blk.1.attn_q.weight", 1, 4, 0).empty());
  CHECK_THROWS_WITH(matrix.find("blk.0.attn_q.weight", 1, 5, 0),
                    Contains("must be of 1 x 5 columns, it is of 1 x 4"));
  CHECK_THROWS_AS(matrix.find("blk.0.ffn_up_exps.weight", 4, 2, 3), LoadError);
}

TEST_CASE("importance: the older binary files") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", binary(1, "output.weight", 3, {6, 3, 3}));
  const auto matrix = ImportanceMatrix::open(folder / "a");
  // Means 2, 1, 1: their mean 4/3 is above 1 already.
  CHECK(found(matrix, "output.weight", 1, 3, 0) == std::vector<float>{2, 1, 1});
}

// The two files that llama.cpp's imatrix program writes of one collection over 512-token chunks:
// sums of x and x^2 and how many x there were, for a matrix, for three experts of which one was
// never chosen, and for the output. Counts are powers of two, so both say the same to the bit.
TEST_CASE("importance: files as llama.cpp writes them, the older one and the GGUF file") {
  struct Collected {
    std::string name;
    Dim columns;
    std::vector<float> counts, sums;
  };
  const std::vector<Collected> all = {
      {"blk.0.attn_q.weight", 4, {1024}, {2048, 512, 0.25f, 4096}},
      {"blk.0.ffn_gate_exps.weight", 2, {256, 0, 1024}, {512, 1024, 0, 0, 4096, 64}},
      {"output.weight", 4, {1024}, {1, 2, 3, 4}}};
  const test::TemporaryFolder folder;
  // imatrix.gguf: sums of x, then of x^2, then counts; keys of the run.
  Metadata metadata;
  metadata.set("general.type", "imatrix");
  metadata.set("imatrix.datasets", MetaValue{MetaType::array, MetaType::string,
                                             std::vector<std::string>{"calibration.txt"}});
  metadata.set("imatrix.chunk_count", std::uint32_t{2});
  metadata.set("imatrix.chunk_size", std::uint32_t{512});
  std::vector<TensorInfo> tensors;
  std::deque<std::vector<float>> plain;
  for (const Collected& one : all) {
    const auto matrices = static_cast<Dim>(one.counts.size());
    plain.emplace_back(one.sums.size(), -3.0f);  // sums of x have signs, and count for nothing here
    tensors.push_back({one.name + ".in_sum", 0, {matrices, one.columns}, bytes_of(plain.back())});
    tensors.push_back({one.name + ".in_sum2", 0, {matrices, one.columns}, bytes_of(one.sums)});
    tensors.push_back({one.name + ".counts", 0, {matrices, 1}, bytes_of(one.counts)});
  }
  write_gguf(folder / "imatrix.gguf", metadata, tensors);
  // imatrix.dat: entries; chunks and values of each, means times chunks, experts side by side, 1
  // where nothing was seen; then all chunks and the name of the text.
  std::string dat = test::raw(static_cast<std::int32_t>(all.size()));
  for (const Collected& one : all) {
    const float most = *std::max_element(one.counts.begin(), one.counts.end());
    const auto chunks = static_cast<std::int32_t>(most / 512);
    dat += test::raw(static_cast<std::int32_t>(one.name.size())) + one.name;
    dat += test::raw(chunks, static_cast<std::int32_t>(one.sums.size()));
    for (std::size_t i = 0; i < one.sums.size(); ++i) {
      const float count = one.counts[i / static_cast<std::size_t>(one.columns)];
      dat += test::raw((count > 0 ? one.sums[i] / count : 1) * static_cast<float>(chunks));
    }
  }
  const std::string text = "calibration.txt";
  dat += test::raw(std::int32_t{2}, static_cast<std::int32_t>(text.size())) + text;
  test::write_file(folder / "imatrix.dat", dat);

  const auto now = ImportanceMatrix::open(folder / "imatrix.gguf");
  const auto then = ImportanceMatrix::open(folder / "imatrix.dat");
  CHECK(now.size() == 3);
  CHECK(then.size() == 3);
  for (const Collected& one : all) {
    const auto matrices = static_cast<Dim>(one.counts.size());
    for (Dim m = 0; m < matrices; ++m) {
      INFO(one.name << " " << m);
      const auto a = found(now, one.name, matrices, one.columns, m);
      const auto b = found(then, one.name, matrices, one.columns, m);
      REQUIRE(a.size() == b.size());
      // The older file scales the experts of a tensor together, which changes no encoding.
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] * b[0] == b[i] * a[0]);
    }
  }
  // Means 2, 0.5, 2^-12, 4: their mean is between 1 and 2, so they stay.
  const std::vector<float> query = {2, 0.5f, 0x1p-12f, 4};
  CHECK(found(now, "blk.0.attn_q.weight", 1, 4, 0) == query);
  CHECK(found(then, "blk.0.attn_q.weight", 1, 4, 0) == query);
  CHECK(found(now, "blk.0.ffn_gate_exps.weight", 3, 2, 1) == std::vector<float>{1, 1});
  // Cut anywhere: refused, but where all that the oldest files do not have is missing.
  const std::size_t needed = dat.size() - 8 - text.size();
  for (std::size_t size = 1; size < dat.size(); ++size) {
    test::write_file(folder / "cut", dat.substr(0, size));
    const auto error = test::error_of<LoadError>([&] { ImportanceMatrix::open(folder / "cut"); });
    INFO(size);
    CHECK(error.empty() == (size == needed));
  }
  const std::string gguf = test::read_file(folder / "imatrix.gguf");
  for (std::size_t size = gguf.size() - 15; size < gguf.size(); ++size) {
    test::write_file(folder / "cut", gguf.substr(0, size));
    const auto error = test::error_of<LoadError>([&] { ImportanceMatrix::open(folder / "cut"); });
    CHECK(test::missing(error, {"cut short"}).empty());
  }
}

TEST_CASE("importance: what is none is refused") {
  const test::TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    test::write_file(folder / "a", bytes);
    try {
      static_cast<void>(ImportanceMatrix::open(folder / "a"));
    } catch (const LoadError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const float inf = std::numeric_limits<float>::infinity();
  CHECK_THAT(refusal(binary(2, "x", 1, {1, 2})), Contains("the length of a name"));
  CHECK_THAT(refusal(binary(-1, "x", 1, {1, 2})), Contains("the number of entries"));
  CHECK_THAT(refusal(binary(1 << 19, "x", 1, {1, 2})), Contains("the length of a name"));
  CHECK_THAT(refusal(binary(1, "", 1, {1, 2})), Contains("must be 1 to 65535, it is 0"));
  CHECK_THAT(refusal(binary(1, "x", 1, {1, -2})), Contains("from 0 to 2^100"));
  CHECK_THAT(refusal(binary(1, "x", 1, {1, inf})), Contains("from 0 to 2^100"));
  CHECK_THAT(refusal(binary(1, "x", 1, {1, std::nanf("")})), Contains("from 0 to 2^100"));
  CHECK_THAT(refusal(binary(1, "x", -4, {1, 2})), Contains("the number of calls"));
  CHECK_THAT(refusal(binary(1, "x", 0, {1, 2})), Contains("calls") && Contains("it is 0"));
  const std::string whole = binary(1, "x", 1, {1, 2});
  CHECK_THAT(refusal(whole + test::raw(7)), Contains("the length of the text's name"));
  CHECK_THAT(refusal(whole + test::raw(7, 5) + "text"), Contains("which is 5, there are 4"));
  CHECK_THAT(refusal(whole + test::raw(7, 3) + "text"), Contains("which is 3, there are 4"));
  CHECK_THAT(refusal(whole + test::raw(7, -1)), Contains("which is -1, there are 0"));
  CHECK(refusal(whole + test::raw(7, 4) + "text") == "accepted");
  CHECK_THAT(refusal(test::raw(1, 1) + "x" + test::raw(1, 1 << 28)), Contains("the values"));
  CHECK_THAT(refusal("no matrix at all, but text"), Contains("the number of entries"));
  CHECK_THAT(refusal(binary(2, "x", 1, {1}) + binary(1, "x", 1, {1}).substr(4)),
             Contains("it is there twice"));
  const auto refused = [&](const std::vector<Entry>& entries) {
    write(folder / "b", entries);
    return refusal(test::read_file(folder / "b"));
  };
  CHECK_THAT(refused({{"x.weight", {2, 2}, {1, 2, 3, 4}}}), Contains("it has none"));
  CHECK_THAT(refused({{"x.in_sum2", {2, 2}, {1, 2, 3, 4}}}), Contains("x.counts"));
  CHECK_THAT(refused({{"x.in_sum2", {2, 2}, {1, 2, 3, 4}}, {"x.counts", {1, 1}, {1}}}),
             Contains("must have 2 counts"));
  CHECK_THAT(refused({{"x.in_sum2", {2, 2}, {1, 2, 3, 4}}, {"x.counts", {2, 1}, {0, 0}}}),
             Contains("it is of none"));
  CHECK_THAT(refused({{"x.in_sum2", {2, 2}, {1, 2, 3, 4}}, {"x.counts", {2, 1}, {1, 0}}}),
             Contains("in matrix 1 it is not"));
}

TEST_CASE("importance: of another model it is refused") {
  const test::TemporaryFolder folder;
  write(folder / "model", {{"token_embd.weight", {4, 2}, std::vector<float>(8)},
                           {"blk.0.attn_q.weight", {2, 2}, std::vector<float>(4)},
                           {"blk.0.attn_norm.weight", {2}, std::vector<float>(2)},
                           {"blk.1.ffn_up_exps.weight", {3, 2, 4}, std::vector<float>(24)},
                           {"blk.1.attn_k.weight", {2, 2}, std::vector<float>(4)},
                           {"blk.2.attn_norm.weight", {2}, std::vector<float>(2)},
                           {"blk.3.nextn.eh_proj.weight", {2, 4}, std::vector<float>(8)}});
  const Gguf model = Gguf::open(folder / "model");
  struct Known {
    std::string name;
    Dim matrices, columns;
  };
  const auto refusal = [&](const std::vector<Known>& known) {
    std::vector<Entry> entries;
    for (const auto& [name, matrices, columns] : known) {
      const auto n = static_cast<std::size_t>(matrices);
      entries.push_back({name + ".in_sum2",
                         {matrices, columns},
                         std::vector<float>(n * static_cast<std::size_t>(columns), 1.0f)});
      entries.push_back({name + ".counts", {matrices, 1}, std::vector<float>(n, 1.0f)});
    }
    write(folder / "matrix", entries);
    const auto matrix = ImportanceMatrix::open(folder / "matrix");
    return test::error_of<LoadError>([&] { matrix.check_made_with(model); });
  };
  const Known query = {"blk.0.attn_q.weight", 1, 2}, experts = {"blk.1.ffn_up_exps.weight", 3, 4};
  CHECK(refusal({query, experts}).empty());
  CHECK(refusal({query, {"blk.1.attn_k.weight", 1, 2}}).empty());
  const std::string matrix = (folder / "matrix").string(), file = (folder / "model").string();
  CHECK(test::missing(refusal({query, experts, {"blk.4.attn_q.weight", 1, 2}}),
                      {matrix, "blk.4.attn_q.weight", file, "another model"})
            .empty());
  CHECK(test::missing(refusal({query}), {matrix, "every layer", file, "blk.1", "another model"})
            .empty());
  CHECK(test::missing(refusal({{"blk.0.attn_q.weight", 1, 3}, experts}),
                      {matrix, "blk.0.attn_q.weight", "1 x 2 columns, it is of 1 x 3"})
            .empty());
  CHECK(test::missing(refusal({query, {"blk.1.ffn_up_exps.weight", 4, 4}}), {"3 x 4", "4 x 4"})
            .empty());
}
