#pragma once
// One file of ../shared/models/zoo against its expected values: logits at every position of both
// prompts within the tolerance that the reference states, greedy ids exactly; the same with other
// cache formats within a bound derived from the model's own measured sensitivity.
#include "golden/reference.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/model/any_model.hpp"
#include "tenon/zoo/registry.hpp"

namespace golden {

// What rounding to a cache format does to a row, relative to its largest value.
inline double relative_rounding(std::string_view cache) {
  return cache == "f16" ? 1.0 / 2048 : cache == "q8_0" ? 1.0 / 254 : 0;
}

// The median over positions of the largest difference of a position's logits.
inline double median_difference(const reference::Logits& a, const reference::Logits& b) {
  std::vector<double> rows;
  for (tenon::Dim r = 0; r < a.rows; ++r) {
    double worst = 0;
    for (tenon::Dim i = 0; i < a.columns; ++i) {
      const auto x = static_cast<double>(a.row(r)[i]), y = static_cast<double>(b.row(r)[i]);
      worst = (std::max)(worst, std::fabs(x - y));
    }
    rows.push_back(worst);
  }
  std::nth_element(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2),
                   rows.end());
  return rows[rows.size() / 2];
}

// Loads models/zoo/NAME.gguf with `load(source)` and checks it with each of `caches`.
template <class Load>
void check_zoo(const std::string& name, Load&& load, std::vector<std::string> caches) {
  const auto file = shared_file("models/zoo/" + name + ".gguf");
  if (file.empty()) return;
  const tenon::AnyModel model(load(tenon::Gguf::open(file)));
  const auto folder = file.parent_path() / "expected";
  const auto expected = reference::json_file(folder / (name + ".json"));
  const auto logits = folder / (name + ".safetensors");
  const double tolerance = std::stod(expected.at("suggested_abs_tolerance").dump());
  // Change of a logit per relative change of what it is computed from.
  const double sensitivity =
      expected.at("max_abs_change_under_1e-6_relative_weight_noise").get<double>() / 1e-6;
  const tenon::Limits limits{.seqs = 1, .context = 128, .step_tokens = 70};
  for (const std::string& cache : caches) {
    auto session =
        model.open(limits, {.cache = cache, .activations = tenon::Activations::f32, .threads = 1});
    const double allowed = tolerance + sensitivity * relative_rounding(cache);
    for (const auto& prompt : expected.at("prompts")) {
      const std::vector<tenon::Token> ids = prompt.at("ids");
      const auto want = reference::safetensor(logits, prompt.at("logits"));
      const auto got = reference::logits(session, ids, 70);
      // Where rounded rows send a token to another expert its logits are others altogether, so that
      // half of the positions have to do; with exact rows none may be off.
      const bool routed = cache != "f32" && !expected.at("min_expert_selection_gap").is_null();
      const double worst =
          routed ? median_difference(got, want) : reference::largest_difference(got, want);
      INFO(name << " cache " << cache << ", " << ids.size() << " tokens: largest difference "
                << worst << ", allowed " << allowed);
      CHECK(worst <= allowed);
    }
    if (cache != "f32" || !expected.contains("greedy")) continue;
    for (const auto& run : expected.at("greedy")) {
      for (const auto& prompt : expected.at("prompts")) {
        if (prompt.at("logits") != run.at("prompt")) continue;
        const std::vector<tenon::Token> ids = run.at("ids");
        CHECK(reference::greedy(session, prompt.at("ids"), ids.size()) == ids);
      }
    }
  }
}

// The same of whatever the registry of the zoo makes of the file, with exact rows and with two
// formats that round.
inline void check_zoo(const std::string& name) {
  check_zoo(name, [](const tenon::Gguf& file) { return tenon::zoo::All::load(file); },
            {"f32", "f16", "q8_0"});
}

}  // namespace golden
