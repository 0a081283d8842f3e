#pragma once
// The figures of roofline: a model's cost on a machine, drawn.
#include <algorithm>
#include <string>
#include <string_view>
#include <tenon/cost/blocks.hpp>
#include <tenon/cost/roofline.hpp>
#include <tenon/cost/shapes.hpp>
#include <tenon/cost/variants.hpp>
#include <vector>

#include "svg_plot.hpp"

// What all of them draw. `heads` are those of the queries; without any there are no other
// attentions to compare with.
struct Study {
  std::string name;
  tenon::cost::ModelSizes model;
  tenon::cost::QueryHeads heads{};
  tenon::cost::Hardware on;
  tenon::cost::Arithmetic in = tenon::cost::Arithmetic::bf16;
  std::vector<tenon::Dim> batches{}, contexts{};

  tenon::Dim longest() const { return *std::max_element(contexts.begin(), contexts.end()); }
};

namespace figures {

using namespace tenon::cost;
using tenon::Dim;

struct Variant {
  std::string name;
  ModelSizes model;
  bool small_rows = false;
};
// The model with attention of several kinds, each with rows in bf16 and in q8_0; or as it is.
inline std::vector<Variant> variants(const Study& s) {
  const Dim n = s.heads.count, h = s.heads.width;
  if (n == 0) return {{"as it is", s.model, false}};
  Dim grouped = (std::min)(Dim{8}, n);
  while (n % grouped != 0) --grouped;
  const std::string gqa = svg::format("GQA-%d", static_cast<int>(grouped));
  const std::string mla =
      svg::format("MLA %d+%d", static_cast<int>(4 * h), static_cast<int>(h / 2));
  const std::pair<std::string, AttentionVariant> kinds[] = {
      {"MHA", {.kv_heads = n}},
      {gqa, {.kv_heads = grouped}},
      {gqa + ", CLA-2", {.kv_heads = grouped, .share = 2}},
      {gqa + ", window 1024", {.kv_heads = grouped, .reach = 1024}},
      {mla, {.rank = 4 * h, .rope = h / 2}}};
  std::vector<Variant> all;
  for (const auto& [name, kind] : kinds) {
    all.push_back({name + ", bf16", with_attention(s.model, n, h, kind, elements::bf16), false});
    all.push_back({name + ", q8_0", with_attention(s.model, n, h, kind, Element{32, 34}), true});
  }
  return all;
}
// The line of variant i: a marker for its attention, dashes for its rows.
inline svg::Series series(const Variant& v, std::size_t i) {
  return {v.name, {}, v.small_rows ? 1 : 0, static_cast<int>(i / 2), v.small_rows};
}
inline std::string title(const Study& s, const char* what) {
  return svg::format("%s: %s on %s", what, s.name.c_str(), std::string(s.on.name).c_str());
}
inline double seconds(const BlockCost& b, const Study& s) {
  return bound_time(static_cast<double>(b.flops), b.bytes, s.on, s.in);
}

// Every block of the model against the machine's bounds: prefill filled, decode hollow.
inline std::string roofline(const Study& s) {
  const double peak = s.on.flops(s.in);
  const char* names[] = {"projections",  "attention", "state",
                         "feed-forward", "experts",   "unembedding"};
  std::vector<svg::Series> points;
  double least = s.on.balance(s.in) / 4, most = s.on.balance(s.in) * 4;
  const auto add = [&](bool decode, Dim batch) {
    const Step step{batch, decode ? 1 : s.longest(), s.longest()};
    each_block(s.model, step, [&](const BlockCost& block) {
      for (std::size_t i = 0; i < std::size(names); ++i) {
        if (block.name != names[i] || block.flops == 0) continue;
        const double x = block.intensity();
        least = (std::min)(least, x);
        most = (std::max)(most, x);
        points[2 * i + (decode ? 0 : 1)].points.push_back(
            {x, (std::min)(peak, x * s.on.bandwidth),
             decode ? svg::format("B %d", static_cast<int>(batch)) : std::string()});
      }
    });
  };
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const int marker = static_cast<int>(i);
    points.push_back({std::string(names[i]) + ", decode", {}, -1, marker, true});
    points.push_back({std::string(names[i]) + ", prefill", {}, -1, marker, false});
  }
  add(false, 1);
  for (const Dim batch : s.batches) add(true, batch);
  std::vector<svg::Series> all;
  int dash = 1;
  const std::pair<const char*, Arithmetic> kinds[] = {{"f32", Arithmetic::f32},
                                                      {"bf16", Arithmetic::bf16},
                                                      {"fp8", Arithmetic::fp8},
                                                      {"int8", Arithmetic::int8}};
  const auto roof = [&](const std::string& name, double flops, int style) {
    const double ridge = flops / s.on.bandwidth;
    all.push_back({svg::format("%s: %sFLOP/s", name.c_str(), svg::short_number(flops).c_str()),
                   {{least / 2, least / 2 * s.on.bandwidth},
                    {ridge, flops},
                    {(std::max)(most, ridge) * 2, flops}},
                   style});
  };
  std::vector<double> drawn;
  for (const auto& each : kinds) {
    const double flops = s.on.flops(each.second);
    if (flops == 0 || std::find(drawn.begin(), drawn.end(), flops) != drawn.end()) continue;
    drawn.push_back(flops);
    std::string name;
    for (const auto& [other, its] : kinds) {
      if (s.on.flops(its) == flops) name += (name.empty() ? "" : ", ") + std::string(other);
    }
    roof(name, flops, flops == peak ? 0 : dash++);
  }
  for (svg::Series& one : points) {
    if (!one.points.empty()) all.push_back(std::move(one));
  }
  return svg::log_plot(
      {title(s, "Roofline"), "arithmetic intensity (FLOPs per byte)", "attainable rate (FLOP/s)"},
      all,
      {svg::format("slope: %sB/s", svg::short_number(s.on.bandwidth).c_str()),
       svg::format("context %d tokens", static_cast<int>(s.longest())),
       "B: sequences of a decode step"});
}

// Of each variant, y(batch, seconds of a decode step) up to the largest batch that fits.
template <class Y>
std::string against_batch(const Study& s, const svg::Labels& text, Y y) {
  std::vector<svg::Series> all;
  const std::vector<Variant> of = variants(s);
  bool none_fits = false;
  for (std::size_t i = 0; i < of.size(); ++i) {
    svg::Series line = series(of[i], i);
    const ModelSizes& m = of[i].model;
    constexpr Dim limit = 1024;
    const Dim most =
        s.on.memory == 0 ? limit : (std::min)(limit, largest_batch(m, s.longest(), s.on.memory));
    for (Dim batch = 1; batch <= most;
         batch = batch < most && 2 * batch > most ? most : 2 * batch) {
      const double time = step_time(m, {batch, 1, s.longest()}, s.on, s.in);
      line.points.push_back({static_cast<double>(batch), y(static_cast<double>(batch), time)});
    }
    none_fits = none_fits || line.points.empty();
    all.push_back(std::move(line));
  }
  std::vector<std::string> notes{svg::format("context %d tokens", static_cast<int>(s.longest())),
                                 "a line ends where memory is full,",
                                 svg::format("%sB", svg::short_number(s.on.memory).c_str())};
  if (none_fits) notes.push_back("no line: not one sequence fits");
  return svg::log_plot(text, all, notes);
}
inline std::string latency(const Study& s) {
  return against_batch(
      s,
      {title(s, "Latency of decoding"), "batch (sequences)", "time of a step = of one token (ms)"},
      [](double, double time) { return time * 1e3; });
}
inline std::string throughput(const Study& s) {
  return against_batch(s,
                       {title(s, "Throughput of decoding"), "batch (sequences)",
                        "all sequences together (tokens/s)"},
                       [](double batch, double time) { return batch / time; });
}

// What one sequence's cache takes.
inline std::string cache(const Study& s) {
  std::vector<svg::Series> all;
  const std::vector<Variant> of = variants(s);
  for (std::size_t i = 0; i < of.size(); ++i) {
    svg::Series line = series(of[i], i);
    for (Dim context = 256; context <= 131072; context *= 2) {
      line.points.push_back(
          {static_cast<double>(context), static_cast<double>(cache_bytes(of[i].model, context))});
    }
    all.push_back(std::move(line));
  }
  const double room = s.on.memory - static_cast<double>(weight_bytes(s.model));
  if (room > 0) all.push_back({"room beside the weights", {{256, room}, {131072, room}}, 2});
  return svg::log_plot(
      {title(s, "Cache of a sequence"), "context (tokens)", "keys and values (bytes)"}, all);
}

// Where a step's time goes.
inline std::string parts(const Study& s) {
  const std::vector<std::string> names{"projections", "attention", "feed-forward", "unembedding",
                                       "norms and input"};
  std::vector<svg::Bar> bars;
  const auto add = [&](const std::string& label, const Step& step) {
    svg::Bar bar{label, {}, std::vector<double>(names.size())};
    double sum = 0;
    each_block(s.model, step, [&](const BlockCost& block) {
      const std::string_view name = block.name == "state"     ? "attention"
                                    : block.name == "experts" ? "feed-forward"
                                                              : block.name;
      const auto at = std::find(names.begin(), names.end(), name) - names.begin();
      bar.parts[static_cast<std::size_t>(at)] += seconds(block, s);
      sum += seconds(block, s);
    });
    bar.note = svg::format("%.4g ms", sum * 1e3);
    bars.push_back(std::move(bar));
  };
  for (const Dim context : s.contexts) {
    const int n = static_cast<int>(context);
    add(svg::format("prefill, %d", n), {1, context, context});
    for (const Dim batch : s.batches) {
      add(svg::format("decode, B %d, %d", static_cast<int>(batch), n), {batch, 1, context});
    }
  }
  return svg::share_bars({title(s, "Time per part"),
                          "share of a step's time (%); B: sequences, then tokens of each",
                          {}},
                         names, bars);
}

inline constexpr const char* names = "roofline, latency, throughput, cache, parts";
inline std::vector<std::pair<std::string, std::string (*)(const Study&)>> all() {
  return {{"roofline", roofline},
          {"latency", latency},
          {"throughput", throughput},
          {"cache", cache},
          {"parts", parts}};
}

}  // namespace figures
