// Which format `quantize` gives each tensor: what llama-quantize chose for the same model, and the
// rules around it.
#include "../../examples/quantize_recipe.hpp"

#include <tenon/io/gguf.hpp>

#include <string>
#include <vector>

#include "catch.hpp"
#include "shared_data.hpp"

using namespace tenon;
using quantize::matches, quantize::name_of, quantize::Recipe;

namespace {

// A model of the llama kind, by its tensors' names and shapes alone.
class Shapes final : public TensorSource {
 public:
  Shapes(std::uint32_t layers, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t experts,
         bool tied) {
    metadata_.set("general.architecture", "llama");
    metadata_.set("llama.block_count", layers);
    metadata_.set("llama.attention.head_count", heads);
    metadata_.set("llama.attention.head_count_kv", kv_heads);
    if (experts > 0) metadata_.set("llama.expert_count", experts);
    add("token_embd.weight");
    if (!tied) add("output.weight");
    for (std::uint32_t i = 0; i < layers; ++i) {
      const std::string blk = "blk." + std::to_string(i) + ".";
      for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_down", "ffn_up"}) {
        add(blk + name + ".weight");
      }
      add(blk + "ffn_gate_inp.weight");
    }
  }
  std::string_view origin() const override { return "shapes"; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    for (const TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

 private:
  void add(std::string name) { tensors_.push_back({std::move(name), 0, {512, 512}, {}}); }
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
};

std::string chosen(const TensorSource& source, const Recipe& recipe, std::string_view name) {
  const int tag = recipe.wanted(*source.find(name));
  return tag < 0 ? "stays" : std::string(name_of(tag));
}

}  // namespace

TEST_CASE("recipe: the types that llama-quantize chose") {
  for (const std::string name : {"q4_k_m", "q6_k"}) {
    const auto path = shared_file("models/quant/llama-256-" + name + ".gguf");
    if (path.empty()) return;
    const Gguf file = Gguf::open(path);
    const Recipe recipe(file, name, false, false, {});
    for (const TensorInfo& tensor : file.tensors()) {
      INFO(name << " " << tensor.name);
      const int wanted = recipe.wanted(tensor);
      const int stored = tag_of_ggml_type<GgufFormats>(tensor.ggml_type);
      CHECK((wanted < 0 ? stored : wanted) == stored);
      CHECK((wanted < 0) == (tensor.shape.size() == 1));
    }
    std::uint32_t type = 0;
    type = static_cast<std::uint32_t>(file.metadata().integer("general.file_type"));
    CHECK(recipe.file_type() == type);
  }
}

TEST_CASE("recipe: mixtures by layer") {
  const Shapes model(32, 32, 8, 0, false);
  const auto type = [&](std::string_view mixture, std::string_view name, bool important = false) {
    return chosen(model, Recipe(model, mixture, false, important, {}), name);
  };
  // Of 32 layers those below 4, from 28 on, and every third between have more bits.
  for (int i = 0; i < 32; ++i) {
    const bool more = i < 4 || i >= 28 || (i - 4) % 3 == 2;
    const std::string blk = "blk." + std::to_string(i) + ".";
    CHECK(type("Q4_K_M", blk + "attn_v.weight") == (more ? "q6_K" : "q4_K"));
    CHECK(type("q4_k", blk + "ffn_down.weight") == (more ? "q6_K" : "q4_K"));
    CHECK(type("q5_k_m", blk + "ffn_down.weight") == (more ? "q6_K" : "q5_K"));
    CHECK(type("q4_k_s", blk + "ffn_down.weight") == (i < 4 ? "q5_K" : "q4_K"));
    CHECK(type("q3_k_m", blk + "ffn_down.weight") == (i < 2 ? "q5_K" : "q4_K"));
    CHECK(type("q4_0", blk + "ffn_down.weight") == "q4_0");
    CHECK(type("q4_0", blk + "ffn_down.weight", true) == (i < 4 ? "q4_1" : "q4_0"));
  }
  CHECK(type("q2_k", "blk.9.attn_v.weight") == "q4_K");  // eight heads share it in fours
  CHECK(type("q2_k", "blk.9.attn_output.weight") == "q3_K");
  CHECK(type("q2_k", "blk.9.attn_q.weight") == "q2_K");
  CHECK(type("q3_k_m", "blk.1.attn_v.weight") == "q5_K");
  CHECK(type("q3_k_m", "blk.2.attn_v.weight") == "q4_K");
  CHECK(type("q3_k_m", "blk.2.attn_output.weight") == "q4_K");
  CHECK(type("q4_k_m", "output.weight") == "q6_K");
  CHECK(type("q4_k_m", "token_embd.weight") == "q4_K");  // not the output
  CHECK(type("q8_0", "output.weight") == "q8_0");
  CHECK(type("f16", "output.weight") == "f16");
  CHECK(type("q4_k_m", "blk.0.ffn_gate_inp.weight") == "stays");
  const Shapes tied(32, 32, 32, 8, true);
  CHECK(chosen(tied, Recipe(tied, "q4_k_m", false, false, {}), "token_embd.weight") == "q6_K");
  CHECK(chosen(tied, Recipe(tied, "q4_k_m", false, false, {}), "blk.5.attn_v.weight") == "q8_0");
  CHECK(chosen(tied, Recipe(tied, "q4_k_m", true, false, {}), "blk.0.attn_v.weight") == "q4_K");
}

TEST_CASE("recipe: patterns, the last match wins; fallbacks") {
  CHECK(matches("*", ""));
  CHECK(matches("blk.*.attn_v.weight", "blk.12.attn_v.weight"));
  CHECK(matches("*ffn*", "blk.0.ffn_up.weight"));
  CHECK(matches("blk.?.x", "blk.1.x"));
  CHECK_FALSE(matches("blk.?.x", "blk.12.x"));
  CHECK_FALSE(matches("ffn", "blk.0.ffn_up.weight"));
  CHECK_FALSE(matches("a*b*c", "a-b-"));
  CHECK(matches(std::string(2000, '*') + "x", std::string(5000, 'y') + "x"));
  const Shapes model(4, 4, 4, 0, false);
  const Recipe recipe(model, "q4_k_m", false, false,
                      {"*=q8_0", "blk.*=q5_K", "blk.1.*=IQ4_NL", "*gate_inp*=f16"});
  CHECK(chosen(model, recipe, "output.weight") == "q8_0");
  CHECK(chosen(model, recipe, "blk.0.attn_q.weight") == "q5_K");
  CHECK(chosen(model, recipe, "blk.1.attn_q.weight") == "iq4_nl");
  CHECK(chosen(model, recipe, "blk.1.ffn_gate_inp.weight") == "f16");
  CHECK_THROWS_WITH(Recipe(model, "q4_k_m", false, false, {"blk"}),
                    Catch::Contains("PATTERN=FORMAT"));
  CHECK_THROWS_WITH(Recipe(model, "q4_k_m", false, false, {"*=q8_K"}), Catch::Contains("q8_K"));
  CHECK_THROWS_WITH(Recipe(model, "q4_k_x", false, false, {}), Catch::Contains("q4_k_x"));
  const auto fallback = [](std::string_view format, Dim columns) {
    return name_of(Recipe::fallback(quantize::tag_of(format), columns));
  };
  CHECK(fallback("q4_K", 512) == "q4_K");
  CHECK(fallback("q4_K", 4544) == "q5_0");
  CHECK(fallback("q5_K", 576) == "q5_1");
  CHECK(fallback("q6_K", 896) == "q8_0");
  CHECK(fallback("q2_K", 896) == "q4_0");
  CHECK(fallback("nvfp4", 96) == "mxfp4");
  for (const char* format : {"q4_K", "q8_0", "q4_0", "iq4_xs", "nvfp4", "mxfp4"}) {
    for (const Dim columns : {1, 14, 33, 172}) CHECK(fallback(format, columns) == "f16");
  }
}
