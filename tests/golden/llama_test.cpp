// Llama-family files against an independent implementation: greedy ids exactly, logits within the
// tolerance the reference data states, and other cache formats within one derived from the model's
// own measured sensitivity.
#include "golden/trained.hpp"
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

double root_mean_square_difference(const Logits& a, const Logits& b) {
  REQUIRE(a.values.size() == b.values.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double difference = static_cast<double>(a.values[i]) - static_cast<double>(b.values[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<double>(a.values.size()));
}

}  // namespace

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

TEST_CASE("llama-256 with K-quants and with every type: exact weights, int8 activations",
          "[golden]") {
  for (const std::string name : {"llama-256-q4_k_m", "llama-256-q6_k", "llama-256-mixed"}) {
    const auto file = shared_file("models/quant/" + name + ".gguf");
    if (file.empty()) return;
    const AnyModel model = zoo::All::load(Gguf::open(file));
    const auto folder = file.parent_path() / "expected";
    const auto expected = reference::json_file(folder / "llama-256.json").at(name);
    const std::vector<Token> ids = expected.at("prompt_ids");
    const Logits want = reference::safetensor(folder / (name + ".safetensors"), "logits_dequant");
    AnySession session = open(model, "f32", Activations::f32);
    INFO(name);
    CHECK(reference::largest_difference(reference::logits(session, ids, 64), want) <= 3e-4);
    const std::vector<Token> greedy = expected.at("greedy_dequant_ids");
    CHECK(greedy.size() == 32);
    CHECK(reference::greedy(session, ids, greedy.size()) == greedy);

    // The reference's kernels round activations to 8 bits with a scale for 256 of them, ours with
    // one for 32: in the mean over all logits ours must not be further from the exact ones. The
    // largest of these differences is no such measure, it hangs on one logit of 10240: 0.34 here
    // and 0.42 there with q4_k_m, but 0.66 here and 0.48 there with q6_k.
    const Logits native = reference::safetensor(folder / (name + ".safetensors"), "logits_native");
    AnySession rounded = open(model, "f32", Activations::int8);
    const Logits ours = reference::logits(rounded, ids, 64);
    const double error = root_mean_square_difference(ours, want);
    INFO("with int8 activations: " << error << ", largest difference "
                                   << reference::largest_difference(ours, want));
    CHECK(error <= root_mean_square_difference(native, want));
    CHECK(error > 0);
  }
}

TEST_CASE("trained story models: logits, greedy ids, perplexity", "[golden]") {
  for (const std::string name : {"story-gqa", "story-draft", "story-mha"}) {
    golden::check_trained(name, [](const Gguf& file) { return zoo::All::load(file); });
  }
}
