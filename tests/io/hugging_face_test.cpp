// Hugging Face folders: every key understood or refused, every tensor in its place, and what is
// made while it is read is what GGUF holds.
#include "tenon/io/hugging_face.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "catch.hpp"
#include "io/errors.hpp"
#include "io/hugging_face_folders.hpp"
#include "shared_data.hpp"
#include "tenon/io/checkpoint.hpp"
#include "tenon/io/gguf_writer.hpp"
#include "tenon/io/hugging_face_writer.hpp"
#include "tenon/quant/fp8.hpp"
#include "tenon/quant/mxfp4.hpp"

using namespace tenon;
using test::floats;
using test::FolderBytes;
using test::same_tensors;
using test::tiny_folder;

namespace {

HuggingFaceFolder opened(const FolderBytes& bytes, const test::TemporaryFolder& at) {
  bytes.write(at / "model");
  return HuggingFaceFolder::open(at / "model");
}
std::string error_of(const FolderBytes& bytes) {
  const test::TemporaryFolder folder;
  return test::error_of<LoadError>([&] { opened(bytes, folder); });
}
// What the error says of a folder that `edit` changed, "" when it is opened.
std::string edited(FolderBytes bytes, const std::function<void(FolderBytes&)>& edit) {
  edit(bytes);
  return error_of(bytes);
}

}  // namespace

TEST_CASE("head_dim is what the file says", "[hugging_face]") {  // bugs.md 80
  for (const Dim kv_heads : {1, 2, 4}) {
    const test::TemporaryFolder at;
    const auto folder = opened(tiny_folder("llama", {.kv_heads = kv_heads}), at);
    CHECK(folder.metadata().integer("llama.attention.key_length") == 16);
    CHECK(folder.metadata().integer("llama.rope.dimension_count") == 16);
    CHECK(folder.find("blk.1.attn_q.weight")->shape == std::vector<Dim>{64, 24});
    CHECK(folder.find("blk.1.attn_k.weight")->shape == std::vector<Dim>{kv_heads * 16, 24});
  }
  const auto three =
      edited(tiny_folder("llama"), [](FolderBytes& f) { f.config["num_key_value_heads"] = 3; });
  CHECK(
      test::missing(three, {"num_attention_heads", "multiple of num_key_value_heads = 3"}).empty());
  const auto absent =
      edited(tiny_folder("llama"), [](FolderBytes& f) { f.config.erase("head_dim"); });
  CHECK(test::missing(absent, {"q_proj.weight must have 24 rows", "[64, 24]"}).empty());
}

TEST_CASE("the output matrix: tied, present all the same, missing", "[hugging_face]") {  // 82
  const test::TemporaryFolder at;
  FolderBytes tied = tiny_folder("llama", {}, true);
  CHECK(opened(tied, at).find("output.weight") == nullptr);
  tied.put("lm_head.weight", {50, 24});
  const auto both = opened(tied, at);
  CHECK(both.find("output.weight") == nullptr);
  REQUIRE(both.ignored_tensors().size() == 1);
  CHECK(both.ignored_tensors()[0] == "lm_head.weight");
  const auto untied =
      edited(tiny_folder("llama"), [](FolderBytes& f) { f.tensors.erase("lm_head.weight"); });
  CHECK(test::missing(untied, {"lm_head.weight must be there", "tie_word_embeddings"}).empty());
  CHECK(opened(tiny_folder("llama"), at).find("output.weight") != nullptr);
}

TEST_CASE("Llama 3's scaling, by old and new keys; unknown ones are refused", "[hugging_face]") {
  // 85: of 32 pairs 15 are kept, 3 blended and 14 divided
  for (const char* key : {"rope_type", "type"}) {
    const test::TemporaryFolder at;
    FolderBytes bytes = tiny_folder("llama", {.head_dim = 64});
    bytes.config["rope_theta"] = 500000.0;
    bytes.config["rope_scaling"] = {{key, "llama3"},
                                    {"factor", 32.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 8192}};
    const auto folder = opened(bytes, at);
    const auto divisors = floats(folder, "rope_freqs.weight");
    REQUIRE(divisors.size() == 32);
    for (std::size_t i = 0; i < 32; ++i) {
      INFO(i << " " << divisors[i]);
      CHECK((divisors[i] == 1) == (i < 15));
      CHECK((divisors[i] == 32) == (i >= 18));
    }
    CHECK(std::is_sorted(divisors.begin(), divisors.end()));
    CHECK_FALSE(folder.metadata().contains("llama.rope.scaling.factor"));  // not applied twice
  }
  const auto scaled = [](nlohmann::json scaling) {
    FolderBytes bytes = tiny_folder("llama");
    bytes.config["rope_scaling"] = std::move(scaling);
    return error_of(bytes);
  };
  CHECK(scaled({{"type", "linear"}, {"factor", 2.0}}).empty());
  CHECK(scaled(nullptr).empty());
  CHECK(scaled({{"rope_type", "default"}}).empty());
  CHECK(scaled({{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32}})
            .empty());
  CHECK(test::missing(scaled({{"rope_type", "dynamic"}, {"factor", 2.0}}),
                      {"rope_scaling", "\"dynamic\""})
            .empty());
  CHECK(test::missing(scaled({{"factor", 2.0}}), {"rope_type"}).empty());
  CHECK(test::missing(scaled({{"type", "linear"}, {"factor", 2.0}, {"beta", 3}}), {"\"beta\""})
            .empty());
  CHECK(scaled({{"type", "yarn"}, {"factor", 4.0}, {"truncate", false}}).empty());
}

TEST_CASE("Llama's rows of queries and keys, and their biases, become neighbours that turn",
          "[hugging_face]") {  // 87
  const test::TemporaryFolder at;
  FolderBytes bytes =
      tiny_folder("llama", {.width = 8, .layers = 1, .heads = 4, .kv_heads = 2, .head_dim = 6});
  bytes.config["attention_bias"] = true;
  for (const char* name : {"q", "k", "v"}) {
    bytes.put(std::string("model.layers.0.self_attn.") + name + "_proj.bias",
              {name[0] == 'q' ? 24 : 12});
  }
  bytes.put("model.layers.0.self_attn.o_proj.bias", {8});
  const auto folder = opened(bytes, at);
  for (const std::string name : {"q", "k"}) {
    const Dim rows = name == "q" ? 24 : 12;
    for (const Dim columns : {8, 1}) {
      const std::string end = columns == 1 ? ".bias" : ".weight";
      const auto theirs = bytes.values("model.layers.0.self_attn." + name + "_proj" + end);
      const auto ours = floats(folder, "blk.0.attn_" + name + end);
      REQUIRE(ours.size() == theirs.size());
      for (Dim r = 0; r < rows; ++r) {
        const Dim head = r / 6, pair = r % 6 / 2, half = r % 2;
        const Dim from = head * 6 + half * 3 + pair;
        for (Dim c = 0; c < columns; ++c) {
          CHECK(ours[static_cast<std::size_t>(r * columns + c)] ==
                theirs[static_cast<std::size_t>(from * columns + c)]);
        }
      }
    }
  }
  CHECK(floats(folder, "blk.0.attn_v.weight") ==
        bytes.values("model.layers.0.self_attn.v_proj.weight"));
  CHECK(floats(folder, "blk.0.attn_v.bias") ==
        bytes.values("model.layers.0.self_attn.v_proj.bias"));
}

TEST_CASE("biases must be those of the configuration or the family", "[hugging_face]") {  // 91
  const auto add = [](FolderBytes& f, const char* letters) {
    for (const char* c = letters; *c != 0; ++c) {
      for (const char* layer : {"0", "1"}) {
        const std::string name = std::string("model.layers.") + layer + ".self_attn." + *c;
        f.put(name + "_proj.bias", {*c == 'q' ? 64 : *c == 'o' ? 24 : 32});
      }
    }
  };
  const FolderBytes qwen = tiny_folder("qwen2");
  const auto with = [&](const char* letters, nlohmann::json flag) {
    return edited(qwen, [&](FolderBytes& f) {
      add(f, letters);
      if (!flag.is_null()) f.config["attention_bias"] = flag;
    });
  };
  CHECK(with("qkv", nullptr).empty());
  CHECK(with("qkv", true).empty());
  CHECK(with("", false).empty());
  CHECK(test::missing(with("qkv", false), {"_proj.bias", "must have a place"}).empty());
  CHECK(test::missing(with("", nullptr), {"q_proj.bias must be there"}).empty());
  CHECK(test::missing(with("qk", true), {"v_proj.bias must be there"}).empty());
  CHECK(test::missing(with("qkvo", nullptr), {"o_proj.bias", "must have a place"}).empty());
  // Llama: none, unless the configuration says so.
  CHECK(test::missing(edited(tiny_folder("llama"), [&](FolderBytes& f) { add(f, "q"); }),
                      {"q_proj.bias", "must have a place"})
            .empty());
  CHECK(edited(tiny_folder("llama"), [&](FolderBytes& f) {
          add(f, "qkvo");
          f.config["attention_bias"] = true;
        }).empty());
}

TEST_CASE("keys: understood, harmless or refused by name", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("llama");
  bytes.config["torch_dtype"] = "bfloat16";
  bytes.config["transformers_version"] = "4.50.0";
  bytes.config["_name_or_path"] = "somewhere";
  bytes.config["new_flag"] = false;
  bytes.config["new_thing"] = nullptr;
  const auto folder = opened(bytes, at);
  CHECK(folder.ignored_keys().size() == 5);
  const auto refused = [](const char* key, nlohmann::json value) {
    return edited(tiny_folder("llama"), [&](FolderBytes& f) { f.config[key] = std::move(value); });
  };
  CHECK(test::missing(refused("residual_multiplier", 0.22), {"\"residual_multiplier\"", "0.22"})
            .empty());
  CHECK(test::missing(refused("hidden_act", "gelu"), {"\"hidden_act\"", "\"gelu\""}).empty());
  CHECK(test::missing(refused("mlp_bias", true), {"\"mlp_bias\""}).empty());
  CHECK(
      test::missing(refused("model_type", "mamba"), {"\"model_type\"", "llama, mistral"}).empty());
  CHECK(test::missing(refused("hidden_size", "24"), {"\"hidden_size\"", "whole number"}).empty());
  CHECK(test::missing(refused("hidden_size", -1), {"\"hidden_size\""}).empty());
  CHECK(test::missing(refused("rms_norm_eps", "x"), {"\"rms_norm_eps\"", "a number"}).empty());
  // A value that no policy could use is named by its key here, not by GGUF's.
  const double infinite_float = 1e60, no_float = 1e-60;
  for (const double wrong : {-1.0, 1.0, infinite_float}) {
    CHECK(test::missing(refused("rms_norm_eps", wrong),
                        {"config.json: key \"rms_norm_eps\" must be a number in [0, 1), it is "})
              .empty());
  }
  for (const double wrong : {0.0, -1.0, no_float, infinite_float}) {
    CHECK(test::missing(refused("rope_theta", wrong),
                        {"config.json: key \"rope_theta\" must be a positive number, it is "})
              .empty());
  }
  CHECK(
      test::missing(refused("rope_scaling", nlohmann::json{{"rope_type", "linear"}, {"factor", 0}}),
                    {"config.json: rope_scaling: key \"factor\" must be a positive number"})
          .empty());
  CHECK(test::missing(refused("num_hidden_layers", 1000000), {"at most 4096"}).empty());
  CHECK(test::missing(refused("num_hidden_layers", 3), {"model.layers.2.input_layernorm"}).empty());
  CHECK(test::missing(refused("num_hidden_layers", 1), {"model.layers.1.", "must have a place"})
            .empty());
  CHECK(test::missing(refused("architectures", {"LlamaForSequenceClassification"}),
                      {"\"architectures\""})
            .empty());
  CHECK(test::missing(refused("quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}),
                      {"\"quant_method\"", "\"gptq\""})
            .empty());
  const test::TemporaryFolder empty;
  test::write_file(empty / "config.json", "{\"model_type\":");
  CHECK(test::missing(test::error_of<LoadError>([&] { HuggingFaceFolder::open(empty.path()); }),
                      {"config.json", "JSON must hold", "byte 14"})
            .empty());
  const std::string deep(300000, '[');  // what copies such a value must not run out of stack
  test::write_file(empty / "config.json", "{\"a\":" + deep + std::string(300000, ']') + "}");
  CHECK(test::missing(test::error_of<LoadError>([&] { HuggingFaceFolder::open(empty.path()); }),
                      {"config.json", "128"})
            .empty());
  test::write_file(empty / "config.json", tiny_folder("llama").config.dump());
  CHECK(test::missing(test::error_of<LoadError>([&] { HuggingFaceFolder::open(empty.path()); }),
                      {"model.safetensors"})
            .empty());
  test::write_file(empty / "config.json", std::string(100000, '['));
  CHECK_THROWS_AS(HuggingFaceFolder::open(empty.path()), LoadError);
}

TEST_CASE("tensors: unknown ones are refused, harmless ones listed", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("llama");
  bytes.put("model.layers.0.self_attn.rotary_emb.inv_freq", {8});
  CHECK(opened(bytes, at).ignored_tensors().size() == 1);
  bytes.put("model.layers.0.self_attn.query_layernorm.weight", {16});
  CHECK(
      test::missing(error_of(bytes), {"query_layernorm.weight [16]", "must have a place"}).empty());
  FolderBytes integers = tiny_folder("llama");
  integers.tensors["model.layers.0.mlp.up_proj.weight"].type = "I32";
  CHECK(test::missing(error_of(integers), {"mlp.up_proj.weight", "it is I32", "GPTQ"}).empty());
}

TEST_CASE("experts become one tensor", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("mixtral", {.layers = 1}, false, false);
  bytes.config["num_local_experts"] = 3;
  bytes.put("model.layers.0.block_sparse_moe.gate.weight", {3, 24});
  std::vector<float> joined;
  for (const char* e : {"0", "1", "2"}) {
    const std::string name = std::string("model.layers.0.block_sparse_moe.experts.") + e;
    bytes.put(name + ".w1.weight", {40, 24});
    bytes.put(name + ".w2.weight", {24, 40});
    bytes.put(name + ".w3.weight", {40, 24});
    const auto one = bytes.values(name + ".w2.weight");
    joined.insert(joined.end(), one.begin(), one.end());
  }
  const auto folder = opened(bytes, at);
  CHECK(folder.find("blk.0.ffn_down_exps.weight")->shape == std::vector<Dim>{3, 24, 40});
  CHECK(floats(folder, "blk.0.ffn_down_exps.weight") == joined);
  // Any part, without keeping the whole.
  std::byte part[1000];
  const StoredBytes& data = folder.find("blk.0.ffn_down_exps.weight")->data;
  CHECK(data.made());
  for (const std::size_t first : {0u, 1u, 3000u, 7001u, 10520u}) {
    data.read(first, part);
    CHECK(std::memcmp(part, reinterpret_cast<const std::byte*>(joined.data()) + first, 1000) == 0);
  }
  bytes.tensors.erase("model.layers.0.block_sparse_moe.experts.2.w3.weight");
  CHECK(test::missing(error_of(bytes), {"experts.2.w3.weight must be there"}).empty());
}

TEST_CASE("Gemma's gains are 1 + weight", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("gemma2", {.head_dim = 16}, true);
  bytes.config["query_pre_attn_scalar"] = 16;
  bytes.config["hidden_activation"] = "gelu_pytorch_tanh";
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    bytes.put(layer + std::string("pre_feedforward_layernorm.weight"), {24});
    bytes.put(layer + std::string("post_feedforward_layernorm.weight"), {24});
  }
  const auto folder = opened(bytes, at);
  auto wanted = bytes.values("model.layers.1.pre_feedforward_layernorm.weight");
  for (float& value : wanted) value += 1;
  CHECK(floats(folder, "blk.1.ffn_norm.weight") == wanted);
  CHECK(folder.metadata().number("gemma2.attn_logit_softcapping") == 50);
  bytes.config["query_pre_attn_scalar"] = 17;
  CHECK(test::missing(error_of(bytes), {"\"query_pre_attn_scalar\" must be 16, it is 17"}).empty());
}

TEST_CASE("F8 weights times the scales of their blocks", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("llama", {.layers = 1, .hidden = 200});
  bytes.config["quantization_config"] = {{"quant_method", "fp8"},
                                         {"weight_block_size", {128, 128}}};
  const std::string name = "model.layers.0.mlp.down_proj.weight";  // [24, 200]
  FolderBytes::Stored stored{"F8_E4M3", {24, 200}, std::vector<std::byte>(24 * 200)};
  for (std::size_t i = 0; i < stored.bytes.size(); ++i) {
    stored.bytes[i] = static_cast<std::byte>(i * 7 % 120);
  }
  bytes.tensors[name] = stored;
  bytes.put(name + "_scale_inv", {1, 2}, {0.5f, 0.3f});
  const auto folder = opened(bytes, at);
  const TensorInfo* down = folder.find("blk.0.ffn_down.weight");
  REQUIRE(down->ggml_type == Bf16::ggml_type);
  std::vector<float> values(24 * 200);
  Bf16::decode(down->data.data(), 24 * 200, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float code = Fp8E4M3::value_of(static_cast<int>(i * 7 % 120));
    const float wanted = code * (i % 200 < 128 ? 0.5f : 0.3f);
    CHECK(values[i] == float_of_bf16(bf16_of_float(wanted)));
  }
  bytes.put(name + "_scale_inv", {1, 3}, {0.5f, 0.3f, 1.0f});
  CHECK(test::missing(error_of(bytes), {"_scale_inv", "must hold float scales"}).empty());
}

TEST_CASE("several files and their index", "[hugging_face]") {
  const test::TemporaryFolder at;
  const FolderBytes bytes = tiny_folder("llama");
  const auto whole = opened(bytes, at);
  write_hugging_face(at / "parts", whole, {.dequantize = false, .file_bytes = 9000});
  CHECK_FALSE(std::filesystem::exists(at / "parts" / "model.safetensors"));
  const auto parts = HuggingFaceFolder::open(at / "parts");
  CHECK(same_tensors(whole, parts));
  const auto index_path = at / "parts" / "model.safetensors.index.json";
  const nlohmann::json index = nlohmann::json::parse(test::read_file(index_path));
  const auto with = [&](nlohmann::json changed) {
    test::write_file(index_path, changed.dump());
    return test::error_of<LoadError>([&] { HuggingFaceFolder::open(at / "parts"); });
  };
  auto less = index, more = index, outside = index;
  less["weight_map"].erase("model.norm.weight");
  CHECK(test::missing(with(less), {"model.norm.weight", "must be listed"}).empty());
  more["weight_map"]["x"] = index["weight_map"]["model.norm.weight"];
  CHECK(test::missing(with(more), {"must hold tensor x"}).empty());
  outside["weight_map"]["model.norm.weight"] = "../model/model.safetensors";
  CHECK(test::missing(with(outside), {"files of the folder"}).empty());
  CHECK_FALSE(with({{"weight_map", 3}}).empty());
  const std::string file = index["weight_map"]["model.norm.weight"];
  with(index);
  std::filesystem::remove(at / "parts" / file);
  CHECK(test::missing(with(index), {file}).empty());
}

TEST_CASE("an index cannot lead out of the folder, nor to the wrong file", "[hugging_face]") {
  const test::TemporaryFolder at;
  const auto whole = opened(tiny_folder("llama"), at);
  write_hugging_face(at / "parts", whole, {.dequantize = false, .file_bytes = 9000});
  const auto index_path = at / "parts" / "model.safetensors.index.json";
  const nlohmann::json index = nlohmann::json::parse(test::read_file(index_path));
  const std::string norm = "model.norm.weight";
  const std::string file = index["weight_map"][norm];
  const auto error = [&] {
    return test::error_of<LoadError>([&] { HuggingFaceFolder::open(at / "parts"); });
  };
  REQUIRE(error() == "");
  for (const std::string name :
       {"../../etc/passwd", "/etc/passwd", "../model/model.safetensors", "./model.safetensors", "",
        "..", ".", "sub/x.safetensors", "..\\x.safetensors", "model.bin",
        "/proc/self/mem.safetensors", "file:model.safetensors/"}) {
    auto changed = index;
    changed["weight_map"][norm] = name;
    test::write_file(index_path, changed.dump());
    INFO(name);
    CHECK(test::missing(error(), {"weight_map must name safetensors files of the folder", norm})
              .empty());
  }
  auto changed = index;
  changed["weight_map"][norm] = std::string("..\0.safetensors", 15);  // ends early for the system
  test::write_file(index_path, changed.dump());
  CHECK(error() != "");
  for (const nlohmann::json& value : {nlohmann::json(nullptr), nlohmann::json(7),
                                      nlohmann::json::array({file}), nlohmann::json::object()}) {
    changed["weight_map"][norm] = value;
    test::write_file(index_path, changed.dump());
    CHECK(test::missing(error(), {"weight_map must name safetensors files", norm}).empty());
  }
  // One tensor in two files, whichever of them the index names, and named twice.
  test::write_file(index_path, index.dump());
  std::string other;
  for (const auto& [tensor, in] : index["weight_map"].items()) {
    if (in != file) other = in;
  }
  REQUIRE(other != "");
  const std::string before = test::read_file(at / "parts" / other);
  {
    const SafeTensors first = SafeTensors::open(at / "parts" / other);
    const SafeTensors second = SafeTensors::open(at / "parts" / file);
    std::vector<SafeTensor> tensors(first.tensors().begin(), first.tensors().end());
    tensors.push_back(*second.find(norm));
    std::ostringstream out;
    write_safetensors(out, tensors, {});
    test::write_file(at / "more", out.str());
  }
  std::filesystem::rename(at / "more", at / "parts" / other);
  CHECK(test::missing(error(), {other, norm, "must be listed"}).empty());
  changed = index;
  changed["weight_map"][norm] = other;
  test::write_file(index_path, changed.dump());
  CHECK(test::missing(error(), {file, norm, "must be listed"}).empty());
  std::string twice = index.dump();
  const std::size_t from = twice.find("\"weight_map\":{") + 14;
  twice.insert(from, '"' + norm + "\":\"" + other + "\",");
  test::write_file(index_path, twice);
  CHECK(test::missing(error(), {other, norm, "must be listed"}).empty());
  test::write_file(at / "parts" / other, before);
  test::write_file(index_path, index.dump());
  CHECK(error() == "");
}

TEST_CASE("links may lead out of the folder; into nothing or themselves they are named",
          "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("llama");
  const auto whole = opened(bytes, at);
  const auto model = at / "model", links = at / "links";
  test::write_file(model / "tokenizer.json", "{}");
  std::filesystem::create_directory(links);
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::create_symlink(model / name, links / name);
  CHECK(same_tensors(whole, HuggingFaceFolder::open(links)));
  const auto error = [&] {
    return test::error_of<LoadError>([&] { HuggingFaceFolder::open(links); });
  };
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    const auto link = links / name;
    std::filesystem::remove(link);
    std::filesystem::create_symlink(link, link);
    INFO(name << ": " << error());
    CHECK(test::missing(error(), {link.string(), "must be readable"}).empty());
    std::filesystem::remove(link);
    std::filesystem::create_symlink(at / "nowhere", link);
    CHECK(test::missing(error(), {link.string(), "there is nothing of that name"}).empty());
    std::filesystem::remove(link);
    std::filesystem::create_directory(link);
    CHECK(test::missing(error(), {link.string(), "it is a directory"}).empty());
    std::filesystem::remove(link);
    std::filesystem::create_symlink(model / name, link);
  }
  CHECK(error() == "");
}

TEST_CASE("texts of the tokenizer are metadata", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder("llama");
  bytes.config["eos_token_id"] = 2;
  bytes.config["bos_token_id"] = 1;
  bytes.write(at / "model");
  test::write_file(at / "model" / "tokenizer.json", "{\"a\":1}");
  test::write_file(at / "model" / "tokenizer_config.json", R"({"chat_template":"{{ x }}"})");
  test::write_file(at / "model" / "generation_config.json", R"({"eos_token_id":[2,7,9]})");
  const auto folder = HuggingFaceFolder::open(at / "model");
  const Metadata& m = folder.metadata();
  CHECK(m.text("tokenizer.huggingface.json") == "{\"a\":1}");
  CHECK(m.text("tokenizer.chat_template") == "{{ x }}");
  CHECK(m.integer("tokenizer.ggml.bos_token_id") == 1);
  CHECK(m.integer("tokenizer.ggml.eos_token_id") == 2);
  CHECK(m.integers("tokenizer.ggml.eos_token_ids") == std::vector<std::int64_t>{2, 7, 9});
}

TEST_CASE("gpt-oss: experts in MXFP4 whose rows and nibbles take turns", "[hugging_face]") {
  const test::TemporaryFolder at;
  FolderBytes bytes = tiny_folder(
      "gpt_oss",
      {.width = 64, .layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 16, .hidden = 32}, false,
      false);
  bytes.config["num_local_experts"] = 3;
  bytes.config["num_experts_per_tok"] = 2;
  bytes.config["swiglu_limit"] = 7.0;
  bytes.config["rope_scaling"] = {{"rope_type", "yarn"},
                                  {"factor", 32.0},
                                  {"truncate", false},
                                  {"original_max_position_embeddings", 4096}};
  bytes.config["quantization_config"] = {{"quant_method", "mxfp4"}};
  const std::string layer = "model.layers.0.", mlp = layer + "mlp.";
  for (const char* name : {"q", "k", "v", "o"}) {
    const Dim rows = *name == 'q' ? 32 : *name == 'o' ? 64 : 16;
    bytes.put(layer + "self_attn." + name + "_proj.bias", {rows});
  }
  bytes.put(layer + "self_attn.sinks", {2});
  bytes.put(mlp + "router.weight", {3, 64});
  bytes.put(mlp + "router.bias", {3});
  const auto numbers = [&](const std::string& name, const char* type, std::vector<Dim> shape,
                           std::size_t each) {
    FolderBytes::Stored stored{type, shape, {}};
    std::size_t count = each;
    for (const Dim size : shape) count *= static_cast<std::size_t>(size);
    for (std::size_t i = 0; i < count; ++i) {
      stored.bytes.push_back(static_cast<std::byte>(each == 2           ? (i % 2 == 0 ? i / 2 : 63)
                                                    : shape.size() == 3 ? 120 + i % 9
                                                                        : i * 37 % 251));
    }
    bytes.tensors[mlp + "experts." + name] = std::move(stored);
  };
  numbers("gate_up_proj_blocks", "U8", {3, 64, 2, 16}, 1);
  numbers("gate_up_proj_scales", "U8", {3, 64, 2}, 1);
  numbers("gate_up_proj_bias", "BF16", {3, 64}, 2);
  numbers("down_proj_blocks", "U8", {3, 64, 1, 16}, 1);
  numbers("down_proj_scales", "U8", {3, 64, 1}, 1);
  numbers("down_proj_bias", "BF16", {3, 64}, 2);
  const auto folder = opened(bytes, at);
  CHECK_FALSE(folder.metadata().flag("gpt-oss.rope.scaling.yarn_truncate"));
  // As the checkpoint means it: value 2j in the low nibble of byte j, 2j + 1 in the high one.
  constexpr float elements[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const auto value = [&](const std::string& name, std::size_t row, std::size_t column,
                         std::size_t blocks) {
    const auto& nibbles = bytes.tensors.at(mlp + "experts." + name + "_blocks").bytes;
    const auto& scales = bytes.tensors.at(mlp + "experts." + name + "_scales").bytes;
    const std::size_t block = row * blocks + column / 32, i = column % 32;
    const auto pair = std::to_integer<unsigned>(nibbles[block * 16 + i / 2]);
    const unsigned code = i % 2 == 0 ? pair & 15 : pair >> 4;
    const float sign = code < 8 ? 1.0f : -1.0f;
    return sign * std::ldexp(elements[code & 7], std::to_integer<int>(scales[block]) - 127);
  };
  const auto check = [&](const char* ours, const std::string& theirs, std::size_t first,
                         std::size_t turns, std::size_t rows, std::size_t columns) {
    const TensorInfo* tensor = folder.find(std::string("blk.0.ffn_") + ours + "_exps.weight");
    REQUIRE(tensor != nullptr);
    REQUIRE(tensor->shape ==
            std::vector<Dim>{3, static_cast<Dim>(rows), static_cast<Dim>(columns)});
    std::vector<float> values(3 * rows * columns);
    Mxfp4::decode(tensor->data.data(), static_cast<Dim>(values.size()), values.data());
    const auto added = floats(folder, std::string("blk.0.ffn_") + ours + "_exps.bias");
    bool same = true;
    for (std::size_t r = 0; r < 3 * rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        same = same && values[r * columns + c] == value(theirs, r * turns + first, c, columns / 32);
      }
      const auto bias = static_cast<std::uint16_t>(((r * turns + first) & 255) | 63u << 8);
      same = same && added[r] == float_of_bf16(bias);
    }
    INFO(ours);
    CHECK(same);
  };
  check("gate", "gate_up_proj", 0, 2, 32, 64);
  check("up", "gate_up_proj", 1, 2, 32, 64);
  check("down", "down_proj", 0, 1, 64, 32);
  bytes.tensors.erase(mlp + "experts.down_proj_bias");
  CHECK(test::missing(error_of(bytes), {"down_proj_bias must be there"}).empty());
}
