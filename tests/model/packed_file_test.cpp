// A packed file is mapped and gives what the original gives; one that lies is refused.
#include "tenon/model/packed_file.hpp"

#include <cstring>
#include <deque>
#include <functional>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "model/synthetic.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/io/gguf_writer.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using M = zoo::Llama<Contiguous<F32>, AnyOf<F32, F16, Q8_0>>;

namespace {

std::vector<float> logits(const M& model) {
  SerialExecutor serial;
  auto session = model.open({.seqs = 1, .context = 8, .step_tokens = 4}, {.executor = &serial});
  const SeqId seq = session.open();
  const Token tokens[] = {5, 250, 9};
  const int count = 3, want[] = {0, 1, 2};
  std::vector<float> out(3 * 300);
  session.forward({{&seq, 1}, {&count, 1}, tokens, {}, {}, want}, matrix(out.data(), 3, 300));
  return out;
}

M bind_and_pack(const TensorSource& source, const std::filesystem::path& path) {
  SerialExecutor serial;
  PackedLog log;
  M model = M::bind(source, serial, {.packed = &log});
  write_packed(path, source, log, serial);
  return model;
}

// A packed file in memory whose keys and tensors can be made to lie.
struct Lies {
  Metadata metadata;
  std::vector<TensorInfo> tensors;

  explicit Lies(const Gguf& file)
      : metadata(file.metadata()), tensors(file.tensors().begin(), file.tensors().end()) {}
  void remove(const std::string& key) {
    Metadata rest;
    for (const auto& entry : metadata.entries()) {
      if (entry.key != key) rest.set(entry.key, entry.value);
    }
    metadata = std::move(rest);
  }
  TensorInfo& tensor(std::string_view name) {
    for (TensorInfo& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::logic_error("no such tensor");
  }
  std::vector<std::uint64_t>& numbers(const std::string& key) {
    return std::get<std::vector<std::uint64_t>>(data("tenon.packed." + key));
  }
  std::vector<std::string>& names() {
    return std::get<std::vector<std::string>>(data("tenon.packed.names"));
  }

 private:
  MetaValue::Data& data(const std::string& key) {
    return const_cast<MetaValue*>(metadata.find(key))->data;
  }
};

constexpr std::string_view matrix_name = "blk.1.ffn_up.weight";

}  // namespace

TEST_CASE("a model bound from the packed file has the bits of the original", "[packed]") {
  const test::TemporaryFolder folder;
  for (const int format : {F32::ggml_type, F16::ggml_type, Q8_0::ggml_type}) {
    for (const bool tied : {true, false}) {
      const synthetic::Llama source({.tied = tied}, format);
      const M original = bind_and_pack(source, folder / "packed.gguf");
      const M mapped = M::bind(Gguf::open(folder / "packed.gguf"));  // the file is closed again
      CHECK(logits(mapped) == logits(original));
      CHECK(mapped.bytes() == original.bytes());
      CHECK(mapped.bound()->fingerprint == original.bound()->fingerprint);
      // Bytes in memory at any address are as good.
      const std::string text = test::read_file(folder / "packed.gguf");
      std::vector<std::byte> bytes(text.size());
      std::memcpy(bytes.data(), text.data(), text.size());
      CHECK(logits(M::bind(Gguf::from_bytes(std::move(bytes)))) == logits(original));
      // A packed file can be packed again and stays as it is.
      bind_and_pack(Gguf::open(folder / "packed.gguf"), folder / "again.gguf");
      CHECK(test::read_file(folder / "again.gguf") == text);
    }
  }
}

TEST_CASE("matrices of a packed file are mapped, and other readers see lists of bytes",
          "[packed]") {
  const test::TemporaryFolder folder;
  const synthetic::Llama source({}, Q8_0::ggml_type);
  bind_and_pack(source, folder / "packed.gguf");
  const Gguf file = Gguf::open(folder / "packed.gguf");
  const M model = M::bind(file);
  const TensorInfo& stored = *file.find("token_embd.weight");
  CHECK(stored.ggml_type == 24);  // i8
  CHECK(stored.shape == std::vector<Dim>{304 * 64 / 32 * 34});
  CHECK(model.bound()->input.embedding.packed().data() == stored.data.data());
  CHECK(file.find("output_norm.weight")->shape == std::vector<Dim>{64});
  CHECK(file.alignment() == 64);
  for (const auto& entry : source.metadata().entries()) CHECK(file.metadata().contains(entry.key));
}

TEST_CASE("a stack keeps each matrix on a cache line; what is sliced stays as it was", "[packed]") {
  using Formats = AnyOf<F32, Q8_0>;
  const test::TemporaryFolder folder;
  SerialExecutor serial;
  synthetic::Llama source({.layers = 1}, Q8_0::ggml_type);
  source.edit_tensors().clear();
  source.matrix("a.weight", 3 * 16, 32);  // 544 bytes each, which is no multiple of 64
  source.matrix("b.weight", 3 * 16, 32);
  for (TensorInfo& tensor : source.edit_tensors()) tensor.shape = {3, 16, 32};
  const auto read = [&](const TensorSource& from, PackedLog* log) {
    Loader<Formats> loader(from, serial, {.verify = true, .packed = log});
    std::vector<PackedMatrix<Formats>> a, b;
    loader.stack("a", a, {3, "n"}, {16, "out"}, {32, "in"});
    loader.stack("b", b, {3, "n"}, {16, "out"}, {32, "in"});
    loader.slices("b", b, {3, "n"}, Slice{{16, "out"}, 4, 8, false}, {32, "in"});
    std::vector<float> rows;
    for (const auto* list : {&a, &b}) {
      for (const auto& one : *list) {
        for (Dim r = 0; r < one.out(); ++r) {
          rows.resize(rows.size() + 32);
          one.decode_row(r, rows.data() + rows.size() - 32);
        }
      }
    }
    return rows;
  };
  PackedLog log;
  const auto rows = read(source, &log);
  CHECK(rows.size() == (3 * 16 + 3 * 16 + 3 * 8) * 32);
  write_packed(folder / "packed.gguf", source, log, serial);
  const Gguf file = Gguf::open(folder / "packed.gguf");
  CHECK(file.find("a.weight")->shape == std::vector<Dim>{3 * 576});
  CHECK(file.find("b.weight")->shape == std::vector<Dim>{3, 16, 32});
  CHECK(read(file, nullptr) == rows);
}

TEST_CASE("progress of a packed file reaches its total, and a false stops it", "[packed]") {
  const test::TemporaryFolder folder;
  bind_and_pack(synthetic::Llama({}, Q8_0::ggml_type), folder / "packed.gguf");
  const Gguf file = Gguf::open(folder / "packed.gguf");
  SerialExecutor serial;
  std::size_t all = 0, last = 0;
  for (const TensorInfo& tensor : file.tensors()) all += tensor.data.size();
  static_cast<void>(M::bind(file, serial, {.progress = [&](std::size_t done, std::size_t total) {
                              CHECK(done > last);
                              CHECK(total == all);
                              last = done;
                              return true;
                            }}));
  CHECK(last == all);
  CHECK_THROWS_AS(
      M::bind(file, serial, {.progress = [](std::size_t, std::size_t) { return false; }}),
      Cancelled);
}

TEST_CASE("changed bytes are found when asked for", "[packed]") {
  const test::TemporaryFolder folder;
  bind_and_pack(synthetic::Llama({}, Q8_0::ggml_type), folder / "packed.gguf");
  std::string bytes = test::read_file(folder / "packed.gguf");
  SerialExecutor serial;
  const auto bind = [&](bool verify) {
    static_cast<void>(M::bind(Gguf::open(folder / "packed.gguf"), serial, {.verify = verify}));
  };
  CHECK_NOTHROW(bind(true));
  bytes[bytes.size() - 200] ^= 1;  // in the last matrix
  test::write_file(folder / "packed.gguf", bytes);
  CHECK_NOTHROW(bind(false));
  CHECK(test::missing(test::error_of<LoadError>([&] { bind(true); }),
                      {"blk.1.ffn_down.weight", "checksum", "pack the original"}) == "");
}

TEST_CASE("packed files that lie are refused", "[packed]") {
  const test::TemporaryFolder folder;
  bind_and_pack(synthetic::Llama({}, Q8_0::ggml_type), folder / "packed.gguf");
  const Gguf file = Gguf::open(folder / "packed.gguf");
  // The index of the matrix in the arrays, and of its first size.
  const Lies truth(file);
  const auto& names = file.metadata().texts("tenon.packed.names");
  const auto at =
      static_cast<std::size_t>(std::find(names.begin(), names.end(), matrix_name) - names.begin());
  REQUIRE(at < names.size());
  const std::size_t size = 2 * at;
  const auto refusal = [&](const std::function<void(Lies&)>& edit) {
    Lies lies(file);
    edit(lies);
    write_gguf(folder / "lies.gguf", lies.metadata, lies.tensors);
    return test::error_of<LoadError>(
        [&] { static_cast<void>(M::bind(Gguf::open(folder / "lies.gguf"))); });
  };
  CHECK(refusal([](Lies&) {}) == "");
  const auto refuses = [&](std::initializer_list<std::string_view> parts,
                           const std::function<void(Lies&)>& edit) {
    CHECK(test::missing(refusal(edit), parts) == "");
  };
  for (const char* key :
       {"version", "names", "types", "ranks", "shapes", "layouts", "digests", "checksums"}) {
    const std::string whole = std::string("tenon.packed.") + key;
    refuses({whole, "missing", "pack"}, [&](Lies& l) { l.remove(whole); });
    refuses({whole, "pack"}, [&](Lies& l) { l.metadata.set(whole, "text"); });
  }
  refuses({"version", "must be 1", "it is 2", "pack the original"},
          [](Lies& l) { l.metadata.set("tenon.packed.version", std::uint32_t{2}); });
  refuses({"general.alignment", "64", "32"},
          [](Lies& l) { l.metadata.set("general.alignment", std::uint32_t{32}); });
  for (const char* key : {"types", "ranks", "layouts", "digests", "checksums"}) {
    refuses({key, "items"}, [&](Lies& l) { l.numbers(key).pop_back(); });
    refuses({key, "items"}, [&](Lies& l) { l.numbers(key).push_back(1); });
  }
  refuses({"items"}, [](Lies& l) { l.names().pop_back(); });
  refuses({"shape"}, [](Lies& l) { l.numbers("shapes").pop_back(); });
  refuses({"shapes", "items"}, [](Lies& l) { l.numbers("shapes").push_back(1); });
  refuses({"named twice"}, [&](Lies& l) { l.names()[at] = l.names()[at - 1]; });
  refuses({"there is none"}, [&](Lies& l) { l.names()[at] = "elsewhere"; });
  refuses({"output_norm.weight", "list of i8"},
          [&](Lies& l) { l.names()[at] = "output_norm.weight"; });
  // Types: retired, out of range, of other blocks.
  refuses({matrix_name, "type", "4"}, [&](Lies& l) { l.numbers("types")[at] = 4; });
  refuses({matrix_name, "type"}, [&](Lies& l) { l.numbers("types")[at] = ~0u; });
  refuses({matrix_name, "bytes"}, [&](Lies& l) { l.numbers("types")[at] = 1; });
  // Shapes: too many axes, nothing, negative, larger than the bytes, products beyond 64 bits.
  refuses({matrix_name, "axes"}, [&](Lies& l) { l.numbers("ranks")[at] = 9; });
  refuses({matrix_name, "axes"}, [&](Lies& l) { l.numbers("ranks")[at] = ~0u; });
  refuses({matrix_name, "at least 1"}, [&](Lies& l) { l.numbers("shapes")[size] = 0; });
  refuses({matrix_name, "at least 1"},
          [&](Lies& l) { l.numbers("shapes")[size] = ~std::uint64_t{0}; });
  refuses({matrix_name, "bytes"}, [&](Lies& l) { l.numbers("shapes")[size] = 960; });
  refuses({matrix_name, "2^64"},
          [&](Lies& l) { l.numbers("shapes")[size] = std::uint64_t{1} << 62; });
  refuses({matrix_name, "multiple of 32"}, [&](Lies& l) { l.numbers("shapes")[size + 1] = 63; });
  // Bytes: fewer, more, another arrangement.
  const auto resize = [&](Lies& l, std::size_t bytes) {
    TensorInfo& tensor = l.tensor(matrix_name);
    static const std::vector<std::byte> zeros(std::size_t{1} << 16);
    tensor.data = std::span(zeros).first(bytes);
    tensor.shape = {static_cast<Dim>(bytes)};
  };
  const std::size_t whole = file.find(matrix_name)->data.size();
  CHECK(whole == 96 * 64 / 32 * 34);
  refuses({matrix_name, "6528", "6464"}, [&](Lies& l) { resize(l, whole - 64); });
  refuses({matrix_name, "6528", "6592"}, [&](Lies& l) { resize(l, whole + 64); });
  refuses({matrix_name, "arranged", "pack"}, [&](Lies& l) { l.numbers("layouts")[at] ^= 1; });
  refuses({matrix_name, "list of i8"}, [&](Lies& l) { l.tensor(matrix_name).shape = {96, 68}; });
  // Nothing of this is left: the matrix is a list of bytes of the wrong shape.
  Lies bare(file);
  for (const auto& entry : file.metadata().entries()) {
    if (entry.key.starts_with("tenon.packed.")) bare.remove(entry.key);
  }
  write_gguf(folder / "lies.gguf", bare.metadata, bare.tensors);
  CHECK_THROWS_AS(M::bind(Gguf::open(folder / "lies.gguf")), ShapeError);
  // Cut short anywhere.
  const std::string bytes = test::read_file(folder / "packed.gguf");
  for (const std::size_t kept : {bytes.size() - 64, bytes.size() / 2, std::size_t{3000}}) {
    test::write_file(folder / "cut.gguf", std::string_view(bytes).substr(0, kept));
    CHECK_THROWS_AS(M::bind(Gguf::open(folder / "cut.gguf")), LoadError);
  }
}
