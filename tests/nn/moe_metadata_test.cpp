// Mixtures of experts: metadata and tensors that cannot be are refused.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "nn/moe_layers.hpp"

using namespace moe_layers;

TEST_CASE("moe: metadata that cannot be", "[nn]") {
  using Change = std::function<void(Checkpoint&)>;
  const auto refusal = [](const Change& change) -> std::string {
    Checkpoint source = checkpoint(deepseek_full());
    change(source);
    try {
      bind<DeepSeek, F32>(source, 48);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto number = [](std::string key, double value) -> Change {
    return [=](Checkpoint& c) { c.number(key, value); };
  };
  CHECK(refusal([](Checkpoint&) {}) == "accepted");
  CHECK(refusal(number("expert_used_count", 13)) ==
        "metadata key \"test.expert_used_count\" must be at most expert_count = 12, it is 13; the "
        "file is damaged");
  CHECK(refusal(number("expert_used_count", 0)) ==
        "metadata key \"test.expert_used_count\" must be a whole number from 1 to 2147483647, it "
        "is 0; the file is damaged");
  CHECK(refusal(number("expert_group_count", 5)) ==
        "metadata key \"test.expert_group_count\" must divide expert_count = 12, it is 5; the file "
        "is damaged");
  CHECK(refusal(number("expert_group_count", 24)) ==
        "metadata key \"test.expert_group_count\" must divide expert_count = 12, it is 24; the "
        "file is damaged");
  CHECK(refusal(number("expert_group_used_count", 5)) ==
        "metadata key \"test.expert_group_used_count\" must be 1 to 4 so that 3 experts can be "
        "chosen, it is 5; the file is damaged");
  CHECK(refusal([](Checkpoint& c) {
          c.number("expert_used_count", 4);
          c.number("expert_group_used_count", 1);
        }) ==
        "metadata key \"test.expert_group_used_count\" must be 2 to 4 so that 4 experts can be "
        "chosen, it is 1; the file is damaged");
  CHECK(refusal(number("expert_gating_func", 4)) ==
        "metadata key \"test.expert_gating_func\" must be 1 (softmax), 2 (sigmoid) or 3 (softmax "
        "over the chosen), it is 4; compose the model with a layer that implements it");
  CHECK(
      refusal(number("expert_weights_scale", std::numeric_limits<double>::infinity())) ==
      "metadata key \"test.expert_weights_scale\" must be a finite number, it is inf; the file is "
      "damaged");
  CHECK(refusal(number("expert_count", 2e9)).find("must have shape") != std::string::npos);
  CHECK(refusal(number("expert_shared_count", 2147483520.0)).find("must have shape") !=
        std::string::npos);
  CHECK(refusal(number("expert_shared_count", 0)).find("has no place") != std::string::npos);
  CHECK(refusal(number("expert_shared_feed_forward_length", 81)).find("must have shape") !=
        std::string::npos);
  // No groups: 0 and 1 mean the same, and the number of used ones means nothing.
  for (const double groups : {0.0, 1.0}) {
    CHECK(refusal([=](Checkpoint& c) {
            c.number("expert_group_count", groups);
            c.number("expert_group_used_count", 0);
          }) == "accepted");
  }
}
