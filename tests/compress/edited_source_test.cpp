// A checkpoint made of another is one: it can be read, edited again and written.
#include "tenon/compress/edited_source.hpp"

#include <cstring>
#include <optional>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "model/synthetic.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/io/gguf_writer.hpp"

using namespace tenon;

namespace {

std::vector<float> values(const TensorInfo& tensor) {
  REQUIRE(tensor.ggml_type == F32::ggml_type);
  std::vector<float> out(tensor.data.size() / sizeof(float));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

}  // namespace

TEST_CASE("tensors are kept, replaced, added and removed") {
  const synthetic::Llama source({});
  EditedSource edited(source);
  CHECK(edited.tensors().size() == source.tensors().size());
  CHECK(edited.find("output_norm.weight")->data.data() ==
        source.find("output_norm.weight")->data.data());
  const std::vector<float> six{1, 2, 3, 4, 5, 6};
  edited.replace("blk.0.attn_k.weight", {2, 3}, six);
  edited.replace("blk.0.attn_k.bias", {6}, six);
  edited.remove("blk.0.attn_v.weight");
  edited.remove("blk.0.attn_v.bias");  // not there
  CHECK(edited.tensors().size() == source.tensors().size());
  CHECK(edited.find("blk.0.attn_v.weight") == nullptr);
  CHECK(edited.find("blk.0.attn_k.weight")->shape == std::vector<Dim>{2, 3});
  CHECK(values(*edited.find("blk.0.attn_k.bias")) == six);
  CHECK(edited.find("blk.1.attn_v.weight")->data.data() ==
        source.find("blk.1.attn_v.weight")->data.data());
  // The order of the file, without what is gone, then what is new.
  CHECK(edited.tensors().back().name == "blk.0.attn_k.bias");
  for (const TensorInfo& tensor : edited.tensors()) CHECK(edited.find(tensor.name) == &tensor);
  // The other is as it was.
  CHECK(source.find("blk.0.attn_k.weight")->shape == std::vector<Dim>{32, 64});
  CHECK(test::missing(test::error_of<ShapeError>([&] {
                        edited.replace("x", {2, 2}, six);
                      }),
                      {"\"x\" [2, 2]", "4 values", "6"}) == "");
}

TEST_CASE("keys move with the architecture") {
  const synthetic::Llama source({});
  EditedSource edited(source);
  edited.set("attention.sink_count", std::uint32_t{4});
  edited.set_architecture("hybrid");
  edited.set("attention.kv_source", std::vector<std::uint64_t>{0, 0});
  edited.set("attention.sliding_window_pattern", std::vector<bool>{true, false});
  edited.remove_key("context_length");
  const Metadata& m = edited.metadata();
  CHECK(m.text("general.architecture") == "hybrid");
  CHECK(m.integer("hybrid.block_count") == 2);
  CHECK(m.integer("hybrid.attention.sink_count") == 4);
  CHECK(m.integers("hybrid.attention.kv_source") == std::vector<std::int64_t>{0, 0});
  CHECK(!m.contains("hybrid.context_length"));
  CHECK(!m.contains("llama.block_count"));
  CHECK(source.metadata().integer("llama.context_length") == 4096);
}

TEST_CASE("edits of edits need only the file, and survive being written") {
  const synthetic::Llama source({});
  const std::vector<float> two{1.5f, -2};
  std::optional<EditedSource> first(source);
  first->replace("a", {2}, two);
  EditedSource second(*first);
  first.reset();
  second.replace("b", {1, 2}, two);
  const EditedSource copy = second;
  second.remove("a");
  CHECK(values(*copy.find("a")) == two);

  const test::TemporaryFolder folder;
  write_gguf(folder / "copy.gguf", copy.metadata(), copy.tensors());
  const Gguf read = Gguf::open((folder / "copy.gguf").string());
  CHECK(read.tensors().size() == copy.tensors().size());
  for (const TensorInfo& tensor : copy.tensors()) {
    const TensorInfo* other = read.find(tensor.name);
    REQUIRE(other != nullptr);
    CHECK(other->shape == tensor.shape);
    CHECK(
        std::equal(other->data.begin(), other->data.end(), tensor.data.begin(), tensor.data.end()));
  }
}
