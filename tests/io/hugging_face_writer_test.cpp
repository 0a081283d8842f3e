// Hugging Face folders that are written: what is read back is what there was, and what a folder
// cannot say is refused.
#include "tenon/io/hugging_face_writer.hpp"

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/hugging_face_folders.hpp"
#include "shared_data.hpp"
#include "tenon/io/checkpoint.hpp"
#include "tenon/io/gguf_writer.hpp"
#include "tenon/quant/blocks.hpp"

using namespace tenon;
using test::floats;
using test::FolderBytes;
using test::same_tensors;
using test::tiny_folder;

TEST_CASE("GGUF to a folder and back: the same tensors, for every family", "[hugging_face]") {
  for (const std::string name : {"llama-mha", "qwen2", "qwen3", "qwen3moe", "mixtral"}) {
    const auto file = shared_file("models/zoo/" + name + ".gguf");
    if (file.empty()) return;
    INFO(name);
    const test::TemporaryFolder at;
    const auto gguf = open_checkpoint(file);
    write_hugging_face(at / "model", *gguf);
    const auto folder = open_checkpoint(at / "model");
    CHECK(same_tensors(*gguf, *folder));
    // And through the files of both kinds once more.
    write_gguf(at / "again.gguf", folder->metadata(), folder->tensors());
    const auto again = open_checkpoint(at / "again.gguf");
    CHECK(same_tensors(*gguf, *again));
    write_hugging_face(at / "last", *again);
    const auto first = SafeTensors::open(at / "model" / "model.safetensors");
    const auto last = SafeTensors::open(at / "last" / "model.safetensors");
    REQUIRE(first.tensors().size() == last.tensors().size());
    for (const SafeTensor& tensor : first.tensors()) {
      const SafeTensor* other = last.find(tensor.name);
      REQUIRE(other != nullptr);
      CHECK(std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin()));
    }
  }
}

TEST_CASE("where no folder can be written is said before anything is", "[hugging_face]") {
  const test::TemporaryFolder at;
  const auto refusal = [&](const std::string& name) {
    return test::error_of<RequestError>([&] { check_writable_folder(at / name); });
  };
  test::write_file(at / "file", "no folder");
  CHECK(test::missing(refusal("file"), {(at / "file").string(), "must be a folder", "name another"})
            .empty());
  CHECK(test::missing(refusal("file/new/one"), {"file/new/one", "is no folder"}).empty());
  std::filesystem::create_directory_symlink(at / "absent", at / "link");
  CHECK(test::missing(refusal("link"), {"link", "is no folder"}).empty());
  for (const std::string name : {"new", "new/", "new/and/inside", "new/../other"}) {
    INFO(name);
    CHECK(refusal(name).empty());
  }
  for (const std::string name : {"config.json", "tokenizer.json", "model.safetensors.index.json"}) {
    std::filesystem::create_directories(at / "full" / name);
    CHECK(test::missing(refusal("full"), {name, "it is a directory"}).empty());
    std::filesystem::remove(at / "full" / name);
  }
  std::filesystem::create_directories(at / "full" / "anything");
  CHECK(refusal("full").empty());
  // Nothing is left of looking.
  std::size_t entries = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(at / ".")) {
    entries += entry.path().filename() != "anything" ? 1 : 0;
  }
  CHECK(entries == 3);  // file, link, full
}

TEST_CASE("what a folder cannot say is refused", "[hugging_face]") {
  const auto quantized = shared_file("models/stories260K-q8_0.gguf");
  const auto factors = shared_file("models/zoo/llama3-ropefreqs.gguf");
  if (quantized.empty() || factors.empty()) return;
  const test::TemporaryFolder at;
  const auto refused = [&](const std::filesystem::path& file) {
    return test::error_of<RequestError>(
        [&] { write_hugging_face(at / "model", *open_checkpoint(file)); });
  };
  CHECK(test::missing(refused(quantized), {"it is q8_0", "dequantized"}).empty());
  // The divisors of Llama 3's scaling are kept where its numbers can be told from them.
  const auto scaled = open_checkpoint(factors);
  write_hugging_face(at / "llama3", *scaled);
  const nlohmann::json config = nlohmann::json::parse(test::read_file(at / "llama3/config.json"));
  CHECK(config.at("rope_scaling") == nlohmann::json{{"rope_type", "llama3"},
                                                    {"factor", 8.0},
                                                    {"low_freq_factor", 1.0},
                                                    {"high_freq_factor", 4.0},
                                                    {"original_max_position_embeddings", 64}});
  CHECK(floats(*open_checkpoint(at / "llama3"), "rope_freqs.weight") ==
        floats(*scaled, "rope_freqs.weight"));
  std::vector<TensorInfo> tensors(scaled->tensors().begin(), scaled->tensors().end());
  std::vector<float> others(floats(*scaled, "rope_freqs.weight").size(), 1.5F);
  for (TensorInfo& tensor : tensors) {
    if (tensor.name == "rope_freqs.weight") tensor.data = std::as_bytes(std::span(others));
  }
  write_gguf(at / "others.gguf", scaled->metadata(), tensors);
  CHECK(test::missing(refused(at / "others.gguf"), {"rope_freqs.weight", "type llama3"}).empty());
  CHECK_FALSE(std::filesystem::exists(at / "model"));
  const auto source = open_checkpoint(quantized);
  write_hugging_face(at / "model", *source, {.dequantize = true});
  const auto folder = open_checkpoint(at / "model");
  const TensorInfo* before = source->find("blk.0.attn_output.weight");
  std::vector<float> values(64 * 64);
  Q8_0::decode(before->data.data(), 64 * 64, values.data());
  CHECK(floats(*folder, "blk.0.attn_output.weight") == values);
}
