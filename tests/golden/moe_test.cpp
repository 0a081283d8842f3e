// Mixtures of experts against an independent implementation: logits at every position, greedy ids.
#include "tenon/nn/moe.hpp"
#include "golden/reference.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;
using reference::Logits;

namespace {

// Architecture "llama" with experts.
using Mixtral =
    Decoder<Kinds<Block<Gqa<GqaSpec{}, Causal, Rope, Contiguous<F32>>, Moe<MoeSpec{}>, RmsNorm>>,
            Uniform{}, AnyOf<F32, F16>>;

template <class M>
void check(const std::string& name) {
  const auto file = shared_file("models/zoo/" + name + ".gguf");
  if (file.empty()) return;
  const auto folder = file.parent_path() / "expected";
  const auto expected = reference::json_file(folder / (name + ".json"));
  const double tolerance = expected.at("suggested_abs_tolerance").template get<double>();
  const M model = M::bind(Gguf::open(file));
  auto session = model.open({.seqs = 1, .context = 128, .step_tokens = 70}, {.threads = 2});
  for (const auto& prompt : expected.at("prompts")) {
    const std::vector<Token> ids = prompt.at("ids");
    const Logits want =
        reference::safetensor(folder / (name + ".safetensors"), prompt.at("logits"));
    const Logits whole = reference::logits(session, ids, 70);
    const double worst = reference::largest_difference(whole, want);
    INFO(name << ", " << ids.size() << " tokens: largest difference " << worst);
    CHECK(worst <= tolerance);
    for (const int chunk : {1, 7}) {
      CHECK(reference::same_bits(reference::logits(session, ids, chunk), whole));
    }
    for (const auto& run : expected.at("greedy")) {
      if (prompt.at("logits") != run.at("prompt")) continue;
      const std::vector<Token> greedy = run.at("ids");
      CHECK(reference::greedy(session, ids, greedy.size()) == greedy);
    }
  }
}

}  // namespace

TEST_CASE("mixtral: logits and greedy ids", "[golden]") {
  check<Mixtral>("mixtral");
}
