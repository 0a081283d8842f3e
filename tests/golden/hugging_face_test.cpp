// Models bound to Hugging Face folders: the same bits as from the GGUF file of the same model, and
// the expected values of an independent implementation.
#include "golden/reference.hpp"
#include "io/hugging_face_folders.hpp"
#include "tenon/io/checkpoint.hpp"
#include "tenon/io/gguf_writer.hpp"
#include "tenon/io/hugging_face_writer.hpp"
#include "tenon/io/quantized_source.hpp"
#include "tenon/zoo/registry.hpp"

using namespace tenon;
using reference::Logits;

namespace {

AnySession session_of(const TensorSource& source) {
  return zoo::All::load(source).open(
      {.seqs = 1, .context = 512, .step_tokens = 64},
      {.cache = "f32", .activations = Activations::f32, .threads = 1});
}
Logits logits_of(const TensorSource& source, const std::vector<Token>& ids) {
  AnySession session = session_of(source);
  return reference::logits(session, ids, 64);
}
std::vector<Token> greedy_of(const TensorSource& source, const std::vector<Token>& prompt,
                             std::size_t count) {
  AnySession session = session_of(source);
  return reference::greedy(session, prompt, count);
}

}  // namespace

TEST_CASE("stories260K: folder, GGUF and what is converted from them have the same bits",
          "[golden]") {
  const auto folder = shared_file("models/stories260K");
  if (folder.empty()) return;
  const auto models = folder.parent_path();
  const auto expected = reference::json_file(models / "expected" / "stories260K.json");
  const std::vector<Token> ids = expected.at("logits").at(1).at("ids");
  const auto from_folder = open_checkpoint(folder),
             from_gguf = open_checkpoint(models / "stories260K.gguf");
  const Logits want = logits_of(*from_gguf, ids);
  CHECK(reference::same_bits(logits_of(*from_folder, ids), want));
  CHECK(reference::largest_difference(
            want, reference::npy(models / "expected" / "stories260K_logits_1.npy")) <= 2e-4);

  const test::TemporaryFolder at;
  write_gguf(at / "made.gguf", from_folder->metadata(), from_folder->tensors());
  const auto made = open_checkpoint(at / "made.gguf");
  CHECK(reference::same_bits(logits_of(*made, ids), want));
  write_hugging_face(at / "again", *made);
  const auto again = open_checkpoint(at / "again");
  CHECK(reference::same_bits(logits_of(*again, ids), want));
  const auto before = SafeTensors::open(folder / "model.safetensors");
  const auto after = SafeTensors::open(at / "again" / "model.safetensors");
  REQUIRE(before.tensors().size() == after.tensors().size());
  for (const SafeTensor& tensor : before.tensors()) {
    const SafeTensor* other = after.find(tensor.name);
    REQUIRE(other != nullptr);
    CHECK(other->shape == tensor.shape);
    CHECK(std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin()));
  }
  CHECK(reference::json_file(at / "again" / "config.json") ==
        reference::json_file(folder / "config.json"));
  CHECK(test::read_file(at / "again" / "tokenizer.json") ==
        test::read_file(folder / "tokenizer.json"));
}

TEST_CASE("a trained folder of F16 weights: expected logits and greedy ids", "[golden]") {
  const auto draft = shared_file("models/tiny_trained/draft");
  if (draft.empty()) return;
  const auto expected = reference::json_file(draft / "expected.json");
  const Logits want = reference::safetensor(draft / "expected.safetensors", "logits");
  const std::vector<Token> ids = expected.at("prompt_ids");
  REQUIRE(static_cast<Dim>(ids.size()) == want.rows);
  const auto source = open_checkpoint(draft);
  CHECK(reference::largest_difference(logits_of(*source, ids), want) <= 2e-4);
  const std::vector<Token> greedy = expected.at("greedy").at("ids");
  CHECK(greedy_of(*source, expected.at("greedy").at("prompt_ids"), greedy.size()) == greedy);
}

TEST_CASE("trained folders of BF16 weights: expected logits and greedy ids", "[golden]") {
  const auto check = [](const std::string& name) {
    const auto folder = shared_file("models/trained/" + name);
    if (folder.empty()) return;
    const auto expected = reference::json_file(folder / "expected.json");
    const std::vector<Token> ids = expected.at("logits").at("ids");
    const auto source = open_checkpoint(folder);
    const double worst = reference::largest_difference(logits_of(*source, ids),
                                                       reference::npy(folder / "logits.npy"));
    INFO(name << ": largest difference " << worst);
    CHECK(worst <= 2e-4);
    const auto& run = expected.at("greedy").at(0);
    const std::vector<Token> greedy = run.at("ids");
    CHECK(greedy_of(*source, run.at("prompt_ids"), greedy.size()) == greedy);
  };
  for (const std::string name : {"story-gqa", "story-mha", "story-draft", "story-mla"}) check(name);
}

TEST_CASE("latent attention quantized while it loads, and before", "[golden]") {
  const auto folder = shared_file("models/trained/story-mla");
  if (folder.empty()) return;
  // Its kv_b is taken apart and turned, which tears blocks apart.
  const auto source = open_checkpoint(folder);
  const test::TemporaryFolder at;
  const QuantizedSource quantized(*source, weight_format<Q8_0>);
  write_gguf(at / "q8_0.gguf", quantized.metadata(), quantized.tensors());
  const std::vector<Token> ids{1, 392, 391, 261, 375};
  CHECK(reference::same_bits(logits_of(quantized, ids),
                             logits_of(*open_checkpoint(at / "q8_0.gguf"), ids)));
}

TEST_CASE("head_dim apart from width / heads binds and runs", "[golden]") {  // bugs.md 80
  for (const Dim kv_heads : {1, 2, 4}) {
    const test::TemporaryFolder at;
    test::tiny_folder("llama", {.kv_heads = kv_heads}).write(at / "model");
    const Logits logits = logits_of(*open_checkpoint(at / "model"), {1, 2, 3});
    CHECK(logits.values[0] != logits.values[1]);
  }
}
