// Llama-family files against an independent implementation: greedy ids exactly, logits within the
// tolerance the reference data states, and other cache formats within one derived from the model's
// own measured sensitivity.
#include "golden/reference.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/text/tokenizer.hpp"
#include "tenon/zoo/registry.hpp"

using namespace tenon;
using reference::Logits;

namespace {

constexpr Limits limits{.seqs = 1, .context = 512, .step_tokens = 70};

AnySession open(const AnyModel& model, std::string_view cache, Activations activations) {
  return model.open(limits, {.cache = cache, .activations = activations, .threads = 1});
}

struct Zoo {
  AnyModel model;
  nlohmann::json expected;
  std::filesystem::path logits;
};
Zoo zoo_model(const std::string& name, const std::filesystem::path& file) {
  const auto folder = file.parent_path() / "expected";
  return {zoo::All::load(Gguf::open(file)), reference::json_file(folder / (name + ".json")),
          folder / (name + ".safetensors")};
}

// What rounding to a cache format does to a row, relative to its largest value.
double relative_rounding(std::string_view cache) {
  return cache == "f16" ? 1.0 / 2048 : cache == "q8_0" ? 1.0 / 254 : 0;
}

}  // namespace

TEST_CASE("zoo: logits and greedy ids", "[golden]") {
  for (const std::string name : {"llama-mha", "llama-mqa", "llama3-ropefreqs"}) {
    const auto file = shared_file("models/zoo/" + name + ".gguf");
    if (file.empty()) return;
    const Zoo zoo = zoo_model(name, file);
    const double tolerance = std::stod(zoo.expected.at("suggested_abs_tolerance").dump());
    // Change of a logit per relative change of what it is computed from.
    const double sensitivity =
        zoo.expected.at("max_abs_change_under_1e-6_relative_weight_noise").get<double>() / 1e-6;
    for (const std::string_view cache : {"f32", "f16", "q8_0"}) {
      AnySession session = open(zoo.model, cache, Activations::int8);
      const double allowed = tolerance + sensitivity * relative_rounding(cache);
      for (const auto& prompt : zoo.expected.at("prompts")) {
        const std::vector<Token> ids = prompt.at("ids");
        const Logits expected = reference::safetensor(zoo.logits, prompt.at("logits"));
        const double worst =
            reference::largest_difference(reference::logits(session, ids, 70), expected);
        INFO(name << " cache " << cache << ", " << ids.size() << " tokens: largest difference "
                  << worst);
        CHECK(worst <= allowed);
      }
      if (cache != "f32") continue;
      for (const auto& run : zoo.expected.at("greedy")) {
        for (const auto& prompt : zoo.expected.at("prompts")) {
          if (prompt.at("logits") != run.at("prompt")) continue;
          const std::vector<Token> ids = run.at("ids");
          CHECK(reference::greedy(session, prompt.at("ids"), ids.size()) == ids);
        }
      }
    }
  }
}

TEST_CASE("stories260K: logits, greedy ids and text perplexity", "[golden]") {
  const auto file = shared_file("models/stories260K.gguf");
  if (file.empty()) return;
  const Gguf gguf = Gguf::open(file);
  const AnyModel model = zoo::All::load(gguf);
  const auto folder = file.parent_path() / "expected";
  const auto expected = reference::json_file(folder / "stories260K.json");
  AnySession session = open(model, "f32", Activations::f32);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<Token> ids = expected.at("logits").at(i).at("ids");
    const Logits want = reference::npy(folder / message("stories260K_logits_", i, ".npy"));
    CHECK(reference::largest_difference(reference::logits(session, ids, 64), want) <= 2e-4);
  }
  const std::vector<Token> ids = expected.at("greedy").at("ids");
  CHECK(ids.size() == 200);
  CHECK(reference::greedy(session, expected.at("greedy").at("prompt_ids"), ids.size()) == ids);
}

TEST_CASE("stories260K quantized: exact weights, and int8 activations", "[golden]") {
  for (const std::string type : {"q8_0", "q4_0"}) {
    const auto file = shared_file("models/stories260K-" + type + ".gguf");
    if (file.empty()) return;
    const AnyModel model = zoo::All::load(Gguf::open(file));
    const auto folder = file.parent_path() / "expected";
    const auto all = reference::json_file(folder / "stories260K.json");
    const auto& expected = all.at("quantized").at(type == "q8_0" ? "Q8_0" : "Q4_0");
    const std::vector<Token> ids = all.at("logits").at(1).at("ids");
    const Logits want = reference::npy(folder / ("stories260K-" + type + "_logits_1_dequant.npy"));

    AnySession exact = open(model, "f32", Activations::f32);
    CHECK(reference::largest_difference(reference::logits(exact, ids, 64), want) <= 2e-4);
    const std::vector<Token> greedy = expected.at("greedy_dequant_ids_first_32");
    CHECK(reference::greedy(exact, all.at("greedy").at("prompt_ids"), greedy.size()) == greedy);

    // The reference's own kernels round activations to 8 bits too; ours may differ from the exact
    // logits by a fifth more than they do.
    AnySession rounded = open(model, "f32", Activations::int8);
    const double worst = reference::largest_difference(reference::logits(rounded, ids, 64), want);
    INFO(type << " with int8 activations: largest difference " << worst);
    CHECK(worst <= 1.2 * expected.at("max_abs_native_vs_dequant").get<double>());
    CHECK(worst > 0);
  }
}

TEST_CASE("trained story models: logits, greedy ids, tokens of their prompts", "[golden]") {
  for (const std::string name : {"story-gqa", "story-draft", "story-mha"}) {
    const auto file = shared_file("models/trained/" + name + ".gguf");
    if (file.empty()) return;
    const Gguf gguf = Gguf::open(file);
    const AnyModel model = zoo::All::load(gguf);
    const Tokenizer tokenizer = Tokenizer::from(gguf.metadata());
    const auto folder = file.parent_path() / name;
    const auto expected = reference::json_file(folder / "expected.json");
    AnySession session = open(model, "f32", Activations::f32);
    const std::vector<Token> ids = expected.at("logits").at("ids");
    const double worst = reference::largest_difference(reference::logits(session, ids, 64),
                                                       reference::npy(folder / "logits.npy"));
    INFO(name << ": largest difference " << worst);
    // The file rounds the reference's bfloat16 matrices to half: exact but for subnormal weights.
    CHECK(worst <= 2e-4);
    for (const auto& run : expected.at("greedy")) {
      const std::vector<Token> prompt = run.at("prompt_ids");
      CHECK(tokenizer.encode(run.at("prompt").get<std::string>()) == prompt);
      const std::vector<Token> want = run.at("ids");
      CHECK(reference::greedy(session, prompt, want.size()) == want);
    }
  }
}
