// What a model costs on a machine: memory, time of a step and where it goes, from its sizes alone.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <tenon/cost/measured_host.hpp>
#include <tenon/cost/registered.hpp>
#include <tenon/cost/serving.hpp>
#include <tenon/cost/stored.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/zoo/registry.hpp>

#include "command_line.hpp"
#include "roofline_figures.hpp"

using namespace tenon;
using namespace tenon::cost;

namespace {

constexpr int longest_counted = 100'000'000;

struct Options {
  std::string model, shape, hardware = "host", weights, cache, arithmetic;
  std::string figure = "roofline", svg, html;
  std::vector<Dim> batches{1, 8, 64}, contexts{1024, 8192}, kv_heads;
  int chips = 1, threads = 0;
  bool textbook = false;
};

// A table as it is printed and as it goes into a page: one line a row, cells right-aligned.
class Table {
 public:
  Table(std::string title, std::vector<std::string> head) : title_(std::move(title)) {
    rows_.push_back(std::move(head));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const {
    std::vector<std::size_t> widths(rows_[0].size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        widths[i] = (std::max)(widths[i], row[i].size());
      }
    }
    std::string out = title_ + '\n';
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        out += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
      }
      out += '\n';
    }
    return out;
  }
  std::string html() const {
    std::string out = "<h2>" + title_ + "</h2>\n<table>\n";
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::string cell = r == 0 ? "th" : "td";
      out += "<tr>";
      for (const std::string& text : rows_[r]) out += '<' + cell + '>' + text + "</" + cell + '>';
      out += "</tr>\n";
    }
    return out + "</table>\n";
  }

 private:
  std::string title_;
  std::vector<std::vector<std::string>> rows_;
};

std::string number(double x, int digits = 4) {
  return x >= 1000 ? svg::format("%.0f", x) : svg::format("%.*g", digits, x);
}
// With a decimal unit: 16.06 GB.
std::string scaled(double x, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int i = 0;
  for (; x >= 999.95 && i < 6; ++i) x /= 1000;
  return svg::format(i == 0 ? "%.0f %s%s" : "%.4g %s%s", x, prefixes[i], unit);
}

struct Subject {
  ModelSizes sizes;
  QueryHeads heads{};
};
Subject of_file(const Options& o) {
  const auto file = open_checkpoint(o.model);
  const ConfigStorage storage(*file);
  cost::Storage stored = storage_of(*file);
  if (!o.weights.empty()) {
    stored.weights = stored.experts = stored.embedding = stored.output = o.weights;
  }
  stored.keys = stored.values = o.cache;
  const ModelConfig config = storage.view();
  Subject subject{sizes_in<zoo::All>(config, stored), {}};
  if (o.weights.empty()) average_mixtures(subject.sizes, *file);
  const double heads = config.number_or("attention.head_count", 0, 0);
  if (heads >= 1) {
    const double width =
        config.number_or("attention.key_length", static_cast<double>(config.width()) / heads, 0);
    subject.heads = {static_cast<Dim>(heads),
                     static_cast<Dim>(config.number_or("attention.key_length_mla", width, 0))};
  }
  return subject;
}
Subject of_shape(const Options& o) {
  const auto element = [](const std::string& name, const char* of) {
    return cost::detail::element_named<zoo::WeightFormats>(name.empty() ? "bf16" : name, of);
  };
  return {shape_named(o.shape, element(o.weights, "weights"), element(o.cache, "cache")),
          query_heads_named(o.shape)};
}
Hardware machine(const Options& o) {
  if (o.hardware != "host") return hardware_named(o.hardware);
  ThreadTeam team(o.threads);
  return measured_host(team, choose_isa());
}

Table model_table(const ModelSizes& m) {
  Table table("Model", {"", "count", "bytes"});
  const auto row = [&](const char* name, Dim count, Dim bytes) {
    table.add(
        {name, count < 0 ? "" : std::to_string(count), bytes < 0 ? "" : std::to_string(bytes)});
  };
  row("parameters", parameters(m), weight_bytes(m));
  row("that a token meets", active_parameters(m), -1);
  row("cache of a token", -1, cache_bytes_per_token(m));
  const MixerNumbers& mixer = m.groups[0].layer.mixer;
  if (mixer.expand_flops > 0 && mixer.pair_flops > mixer.expanded_pair_flops) {
    const Ratio crossover(mixer.expand_flops, mixer.pair_flops - mixer.expanded_pair_flops);
    table.add({"tokens from which latents are expanded", number(crossover.value()), ""});
  }
  if (state_bytes(m) > 0) row("state of a sequence", -1, state_bytes(m));
  return table;
}

Table hardware_table(const ModelSizes& m, const Hardware& on, Arithmetic in) {
  Table table("Machine", {"", std::string(on.name)});
  const Load load = load_of(m, {1, 1, 1});
  table.add({"peak", scaled(on.flops(in), "FLOP/s")});
  table.add({"bandwidth", scaled(on.bandwidth, "B/s")});
  table.add({"memory", scaled(on.memory, "B")});
  table.add({"balance, FLOPs per byte", number(on.balance(in))});
  table.add({"critical batch, tokens of a step", number(critical_batch(load, on, in))});
  if (on.memory > 0) {
    const Dim longest = longest_context(m, 1, on.memory, longest_counted);
    table.add({"longest context of one sequence",
               longest == longest_counted ? "no limit" : std::to_string(longest)});
  }
  return table;
}

Table decode_table(const ModelSizes& m, const Hardware& on, Arithmetic in, const Options& o) {
  Table table("Decode, one token of each sequence",
              {"ctx", "batch", "resident", "fits", "FLOPs", "bytes", "intensity", "linear ms",
               "attention ms", "step ms", "tokens/s", "bound"});
  for (const Dim context : o.contexts) {
    for (const Dim batch : o.batches) {
      const cost::Step step{batch, 1, context};
      const Parts<Dim> work = flops(m, step);
      const Parts<double> bytes = traffic(m, step);
      const double seconds = step_time(m, step, on, in);
      const double attention =
          bound_time(static_cast<double>(work.attention), bytes.attention, on, in);
      const double by_memory = bytes.total() / on.bandwidth;
      const double by_arithmetic = static_cast<double>(work.total()) / on.flops(in);
      const auto bound = [&](double by) { return seconds <= by * 1.0001; };
      const double rate = static_cast<double>(batch) / seconds;
      const double resident = static_cast<double>(resident_bytes(m, batch, context));
      table.add({std::to_string(context), std::to_string(batch), scaled(resident, "B"),
                 on.memory == 0 ? "?" : (resident <= on.memory ? "yes" : "no"),
                 scaled(static_cast<double>(work.total()), ""), scaled(bytes.total(), "B"),
                 number(intensity(m, step)), number((seconds - attention) * 1e3),
                 number(attention * 1e3), number(seconds * 1e3), number(rate),
                 bound(by_memory)       ? "memory"
                 : bound(by_arithmetic) ? "arithmetic"
                                        : "mixed"});
    }
  }
  return table;
}

Table prefill_table(const ModelSizes& m, const Hardware& on, Arithmetic in, const Options& o) {
  Table table("Prefill, the whole prompt in one step",
              {"ctx", "FLOPs", "bytes", "intensity", "first token ms", "tokens/s",
               "largest batch then", "half-throughput batch"});
  for (const Dim context : o.contexts) {
    const cost::Step step{1, context, context};
    const double seconds = step_time(m, step, on, in);
    const Load load = load_of(m, {1, 1, context});
    table.add({std::to_string(context), scaled(static_cast<double>(flops(m, step).total()), ""),
               scaled(traffic(m, step).total(), "B"), number(intensity(m, step)),
               number(seconds * 1e3), number(static_cast<double>(context) / seconds),
               on.memory == 0 ? "?" : std::to_string(largest_batch(m, context, on.memory)),
               load.cache_bytes > 0 ? number(half_throughput_batch(load)) : "any"});
  }
  return table;
}

// Where each block stands, at the longest context.
Table block_table(const Study& s) {
  Table table(message("Blocks, ctx ", s.longest()),
              {"step", "block", "layers", "FLOPs", "bytes", "intensity", "ms", "bound"});
  const auto add = [&](const std::string& phase, const cost::Step& step) {
    each_block(s.model, step, [&](const BlockCost& block) {
      table.add({phase, std::string(block.name), std::to_string(block.layers),
                 scaled(static_cast<double>(block.flops), ""), scaled(block.bytes, "B"),
                 number(block.intensity()), number(figures::seconds(block, s) * 1e3),
                 block.intensity() > s.on.balance(s.in) ? "arithmetic" : "memory"});
    });
  };
  add("prefill", {1, s.longest(), s.longest()});
  for (const Dim batch : s.batches) add(message("decode B ", batch), {batch, 1, s.longest()});
  return table;
}

// The model as a lecture has it (CS336, lecture 10): without norms, all weights and caches read
// once in a step, for several numbers of key/value heads.
Table textbook_table(const Subject& subject, const Hardware& on, const Options& o) {
  ModelSizes m = subject.sizes;
  m.output_norm = {};
  for (ModelSizes::Group& group : m.groups) group.layer.residual.vectors = 0;
  const Element row =
      cost::detail::element_named<zoo::WeightFormats>(o.cache.empty() ? "bf16" : o.cache, "cache");
  Table table(
      message(o.shape, " on ", on.name, ", norms not counted, memory the only bound"),
      {"ctx", "K", "B", "parameters", "cache of a sequence", "memory", "ms/token", "tokens/s"});
  for (const Dim context : o.contexts) {
    for (const Dim kv_heads : o.kv_heads.empty() ? std::vector<Dim>{0} : o.kv_heads) {
      const ModelSizes v = kv_heads == 0
                               ? m
                               : with_attention(m, subject.heads.count, subject.heads.width,
                                                {.kv_heads = kv_heads}, row);
      for (const Dim batch : o.batches) {
        const Load load = load_of(v, {batch, 1, context});
        const double time = memory_step_time(load, on);
        table.add({std::to_string(context), kv_heads == 0 ? "own" : std::to_string(kv_heads),
                   std::to_string(batch), std::to_string(parameters(v)),
                   std::to_string(cache_bytes(v, context)),
                   std::to_string(resident_bytes(v, batch, context)),
                   svg::format("%.4f", time * 1e3), svg::format("%.2f", load.batch / time)});
      }
    }
  }
  return table;
}

// A shape's name or a checkpoint's, as text of a page.
std::string title_of(const Options& o) {
  if (!o.shape.empty()) return o.shape;
  std::filesystem::path path = std::filesystem::absolute(o.model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.extension() == ".gguf") path = path.stem();
  constexpr std::size_t most = 48;
  return svg::escaped(printable(path.filename().string().substr(0, most)));
}

// What is drawn must not take the place of the checkpoint it is drawn of.
void check_no_part(const std::filesystem::path& out, const std::filesystem::path& model) {
  std::error_code ignored;
  if (out.empty() || model.empty() || !std::filesystem::exists(out, ignored)) return;
  if (std::filesystem::equivalent(out, model, ignored) ||
      std::filesystem::equivalent(std::filesystem::absolute(out).parent_path(), model, ignored) ||
      out.extension() == ".gguf") {
    fail<RequestError>("\"", printable(out.string()),
                       "\" must be no part of a checkpoint, it is one; name another file");
  }
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    fail<RequestError>("\"", path,
                       "\" must be a file that can be written, it is not; name another");
  }
}

Arithmetic arithmetic_named(const std::string& name) {
  if (name == "f32") return Arithmetic::f32;
  if (name == "fp8") return Arithmetic::fp8;
  if (name == "int8") return Arithmetic::int8;
  return Arithmetic::bf16;
}

void report(const Options& o) {
  if (o.model.empty() == o.shape.empty()) {
    fail<RequestError>("one of MODEL and --shape is required, ",
                       o.model.empty() ? "none is" : "both are",
                       " given; name a checkpoint, or a shape of ", shape_names);
  }
  for (const std::string* out : {&o.svg, &o.html}) check_no_part(*out, o.model);
  if (o.textbook && o.shape.empty()) {
    fail<RequestError>("--textbook must be of a --shape, it is of a file; name one of ",
                       shape_names);
  }
  const Subject subject = o.shape.empty() ? of_file(o) : of_shape(o);
  const ModelSizes& m = subject.sizes;
  Hardware on = several(machine(o), o.chips);
  const std::string chips = o.chips > 1 ? message(o.chips, " x ", on.name) : std::string(on.name);
  on.name = chips;
  // The kernels of this library multiply blocks as integers.
  const bool integers = o.hardware == "host" && m.weights.matrices.bits_per_value() < 16;
  const Arithmetic in = arithmetic_named(!o.arithmetic.empty() ? o.arithmetic
                                         : integers            ? "int8"
                                                               : "bf16");
  if (on.flops(in) == 0) {
    fail<RequestError>("--arithmetic must be one that ", on.name, " has, it is ", o.arithmetic,
                       "; choose another");
  }
  if (o.textbook) {
    std::cout << textbook_table(subject, on, o).text();
    return;
  }
  const std::string model = title_of(o), title = message(model, " on ", on.name);
  const Study study{model, m, subject.heads, on, in, o.batches, o.contexts};
  const std::vector<Table> tables{model_table(m), hardware_table(m, on, in),
                                  decode_table(m, on, in, o), prefill_table(m, on, in, o),
                                  block_table(study)};
  for (const Table& table : tables) std::cout << table.text() << '\n';
  for (const auto& [name, draw] : figures::all()) {
    if (!o.svg.empty() && name == o.figure) write(o.svg, draw(study));
  }
  if (o.html.empty()) return;
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>" + title +
      "</title>\n<style>body{font-family:sans-serif}td,th{padding:2px 10px;text-align:right}"
      "table{border-collapse:collapse}tr:nth-child(even){background:#eee}</style>\n<h1>" +
      title + "</h1>\n";
  for (const Table& table : tables) page += table.html();
  for (const auto& [name, draw] : figures::all()) page += draw(study);
  write(o.html, page + "</html>\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Shows what a model costs on a machine: bytes, FLOPs, the time of a step and what bounds it.",
      "roofline");
  app.add_option("MODEL", o.model, "a .gguf file or a Hugging Face folder");
  app.add_option("--shape", o.shape, message("instead of a file, one of ", shape_names));
  app.add_option("--hardware", o.hardware,
                 message("host, which is measured, or one of ", hardware_names))
      ->capture_default_str();
  app.add_option("--chips", o.chips, "as many of these as one, communication not counted")
      ->capture_default_str()
      ->check(from_to(1, 1'000'000));
  app.add_option("--batch", o.batches, "sequences, several numbers")
      ->capture_default_str()
      ->delimiter(',')
      ->check(from_to(1, 1'000'000));
  app.add_option("--ctx", o.contexts, "tokens of each of them, several numbers")
      ->capture_default_str()
      ->delimiter(',')
      ->check(from_to(1, longest_counted));
  app.add_option("--weights", o.weights,
                 "format of all weights; empty: the file's, of a shape bf16");
  app.add_option("--cache", o.cache,
                 "format of cached keys and values; empty: f16, of a shape bf16");
  app.add_option("--arithmetic", o.arithmetic,
                 "what products are computed in; empty: bf16, of block formats on the host int8")
      ->check(CLI::IsMember({"f32", "bf16", "fp8", "int8"}));
  app.add_option("--threads", o.threads,
                 "that measure the host; 0: as many as this process may use")
      ->capture_default_str();
  CLI::Option* const figure =
      app.add_option("--figure", o.figure, message("what --svg draws, one of ", figures::names))
          ->capture_default_str();
  std::vector<std::string> known;
  for (const auto& one : figures::all()) known.push_back(one.first);
  figure->check(CLI::IsMember(known));
  CLI::Option* const svg = app.add_option("--svg", o.svg, "writes one figure");
  CLI::Option* const html =
      app.add_option("--html", o.html, "writes a page with the tables and all figures");
  figure->needs(svg);
  CLI::Option* const textbook =
      app.add_flag("--textbook", o.textbook,
                   "prints one table only: without norms, by memory alone, as lectures have it")
          ->excludes(svg)
          ->excludes(html);
  app.add_option("--kv-heads", o.kv_heads, "with --textbook: numbers of key/value heads to compare")
      ->delimiter(',')
      ->check(from_to(1, 1'000'000))
      ->needs(textbook);
  return run_program(app, argc, argv, [&] { report(o); });
}
