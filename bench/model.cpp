// Speed of any model that the zoo knows, against what the machine can do:
//   bench_model MODEL [-p 128,512] [-n 32] [-b 1,4,16] [-t 1,2] [-d 0,4096] [-r 5] [--cache f16]
// prefill  -p tokens into an empty sequence, in steps of up to 512; logits of the last one
// decode   -n steps of one token for each of -b sequences that hold -d tokens already; given ids,
//          nothing is drawn; logits of every sequence
// Rates are medians of -r runs after one that is not counted, by the wall clock. Beside them:
// GB/s     what a decode step reads (weights, and the cached rows of all sequences) and its share
//          of the speed at which as many bytes are read over and over, by the wall clock, measured
//          just before
// GOP/s    multiplications and additions of the matrices, those of attention not counted, and their
//          share of the peak of the vector units, also where matrix units help: int8 where most
//          weights are in blocks, else f32. The peak is of processor time (machine_bounds.hpp).
// Of a mixture of experts, a step counts for as many experts as its tokens can choose.
// predicted  tokens/s by the cost model (cost/), from the file's sizes and formats alone, if every
//          part of the model were at a bound of this machine, and how many times the measured rate
//          that is. Its peaks are of the wall clock, of the matrix unit where there is one.
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "../examples/command_line.hpp"
#include "json.hpp"
#include "machine.hpp"
#include "machine_bounds.hpp"
#include "reader.hpp"
#include "tenon/core/cpu_count.hpp"
#include "tenon/cost/measured_host.hpp"
#include "tenon/cost/registered.hpp"
#include "tenon/cost/roofline.hpp"
#include "tenon/cost/stored.hpp"
#include "tenon/decode/philox.hpp"
#include "tenon/decode/sequence.hpp"
#include "tenon/io/checkpoint.hpp"
#include "tenon/io/ggml_types.hpp"
#include "tenon/zoo/registry.hpp"

namespace {

using namespace tenon;

struct Options {
  std::string model, cache = "f16";
  std::vector<int> prompts, sequences{1}, threads, depths{0};
  int steps = 32, runs = 5;
  bool json = false;
};
constexpr int chunk = 512;

// What the matrices of a file amount to.
struct Matrices {
  double layers = 0, output = 0;  // weights outside and inside the output matrix
  double experts = 0, expert_bytes = 0;
  double chosen = 1;  // share of the experts that one token uses
  bool blocks = false;

  // Of `tokens` tokens of which `wanted` get logits.
  double operations(double tokens, double wanted) const {
    return 2 * (tokens * (layers + experts * chosen) + wanted * output);
  }
  // Bytes of experts that a step of `tokens` tokens leaves alone at least.
  double bytes_unused(double tokens) const {
    return expert_bytes * (1 - (std::min)(1.0, tokens * chosen));
  }
};

Matrices read_matrices(const TensorSource& file) {
  Matrices all;
  double in_blocks = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.shape.size() < 2) continue;
    double weights = 1;
    for (const Dim n : tensor.shape) weights *= static_cast<double>(n);
    if (tensor.name == "output.weight" ||
        (tensor.name == "token_embd.weight" && file.find("output.weight") == nullptr)) {
      all.output += weights;
    } else if (tensor.name.find("_exps.") != std::string::npos) {
      all.experts += weights;
      all.expert_bytes += static_cast<double>(tensor.data.size());
    } else if (tensor.name.starts_with("blk.")) {
      all.layers += weights;
    } else {
      continue;
    }
    const GgmlType* type = find_ggml_type(tensor.ggml_type);
    if (type != nullptr && type->block > 1) in_blocks += weights;
  }
  all.blocks = in_blocks > (all.layers + all.experts + all.output) / 2;
  const std::string prefix = file.metadata().text("general.architecture") + ".expert_";
  if (all.experts > 0) {
    all.chosen = static_cast<double>(file.metadata().integer(prefix + "used_count")) /
                 static_cast<double>(file.metadata().integer(prefix + "count"));
  }
  return all;
}

cost::ModelSizes sizes_of_file(const TensorSource& file, std::string_view cache) {
  cost::Storage storage = cost::storage_of(file);
  const std::size_t slash = cache.find('/');
  storage.keys = cache.substr(0, slash);
  if (slash != std::string_view::npos) storage.values = cache.substr(slash + 1);
  const ConfigStorage config(file);
  cost::ModelSizes sizes = cost::sizes_in<zoo::All>(config.view(), storage);
  cost::average_mixtures(sizes, file);
  return sizes;
}

struct Result {
  const char* test = "";
  int threads = 0, sequences = 1, depth = 0, tokens = 0;
  std::vector<double> rates;  // tokens/s of each run
  double operations = 0;      // of a token
  double peak = 0;            // 10^9 operations/s
  double bytes = 0;           // of a step; 0: prefill
  double bandwidth = 0;       // bytes/s
  double predicted = 0;       // tokens/s

  double rate() const { return bench::median(rates); }
  double gops() const { return rate() * operations * 1e-9; }
  double over_measured() const { return predicted / rate(); }
  double gbps() const { return rate() / sequences * bytes * 1e-9; }
};

// Any ids will do, as long as they differ; those of a place are the same in every run.
Token token_at(int sequence, int place, int vocab) {
  const auto words = philox4x32(
      {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(sequence), 0, 0}, {2026, 0});
  return static_cast<Token>(words[0] % static_cast<std::uint32_t>(vocab));
}

class Bench {
 public:
  Bench(const Options& options, const AnyModel& model, const Matrices& matrices,
        const cost::ModelSizes& sizes)
      : o_(options), model_(model), matrices_(matrices), sizes_(sizes) {
    for (const int length : options.prompts) longest_ = (std::max)(longest_, length);
  }

  void prefill_all(Executor& team) {
    AnySession session = open(team, 1, longest_);
    const SeqId seq = session.open();
    std::vector<float> logits(static_cast<std::size_t>(model_.vocab()));
    for (const int length : o_.prompts) {
      const std::vector<Token> tokens = text(0, 0, length);
      Result result = of("prefill", session, 1, 0, length);
      result.operations = matrices_.operations(length, 1) / length;
      const cost::Hardware on = host(team, session.isa(), static_cast<double>(model_.step_bytes()));
      double seconds = 0;
      for (int at = 0; at < length; at += chunk) {
        cost::ModelSizes part = sizes_;
        if (at + chunk < length) part.vocab = 0;  // logits of the last token only
        const int now = (std::min)(at + chunk, length);
        seconds += step_seconds(part, {1, now - at, now}, on);
      }
      result.predicted = length / seconds;
      repeat(
          result, length, [&] { prefill(session, seq, std::span(tokens), std::span(logits)); },
          [&] { session.truncate(seq, 0); });
    }
  }

  // Depths are reached one from the other, the shortest first.
  void decode_all(Executor& team, int sequences) {
    const std::set<int> depths(o_.depths.begin(), o_.depths.end());
    AnySession session = open(team, sequences, *depths.rbegin() + o_.steps);
    std::vector<SeqId> seqs{session.open()};
    for (const int depth : depths) {
      extend(session, seqs[0], 0, depth);
      multiply(session, seqs, sequences, depth);
      Result result = of("decode", session, sequences, depth, o_.steps);
      result.operations = matrices_.operations(1, 1);
      // Cached rows: those of the middle step. The cache of a window holds no more than it sees.
      const Limits rows{.seqs = sequences, .context = depth + o_.steps / 2 + 1, .step_tokens = 1};
      result.bytes = static_cast<double>(model_.step_bytes()) - matrices_.bytes_unused(sequences) +
                     static_cast<double>(model_.cache_bytes(rows, o_.cache));
      const cost::Hardware on = host(team, session.isa(), result.bytes);
      result.bandwidth = on.bandwidth;
      result.predicted =
          sequences / step_seconds(sizes_, {sequences, 1, rows.context, sequences}, on);
      repeat(
          result, o_.steps * sequences, [&] { decode(session, seqs, depth); },
          [&] {
            for (const SeqId seq : seqs) session.truncate(seq, depth);
          });
    }
  }

  const std::vector<Result>& results() const { return results_; }

 private:
  AnySession open(Executor& team, int sequences, int context) const {
    const int step = (std::max)((std::min)(context, chunk), sequences);
    return model_.open({.seqs = sequences,
                        .context = context,
                        .step_tokens = step,
                        .rollback = (std::min)(context, o_.steps)},
                       {.cache = o_.cache, .executor = &team});
  }
  // This machine as the cost model takes it; its bandwidth is that of `bytes`, just measured.
  cost::Hardware host(Executor& team, Isa isa, double bytes) {
    constexpr double enough = 2e9;  // no cache is near that
    const auto footprint = static_cast<std::size_t>((std::min)(bytes, enough));
    const auto [known, is_new] = hosts_.try_emplace({team.threads(), isa});
    if (is_new) {
      known->second = cost::measured_host(team, isa, footprint);
    } else {
      known->second.bandwidth = read_bandwidth(footprint, team, isa);
    }
    return known->second;
  }
  // Attention is computed in floats, whatever its rows are stored in.
  double step_seconds(const cost::ModelSizes& sizes, const cost::Step& step,
                      const cost::Hardware& on) const {
    return cost::step_time(sizes, step, on,
                           matrices_.blocks ? cost::Arithmetic::int8 : cost::Arithmetic::f32,
                           cost::Arithmetic::f32);
  }
  Result of(const char* test, const AnySession& session, int sequences, int depth, int tokens) {
    const auto isa = static_cast<std::size_t>(session.isa());
    if (!bounds_[isa]) bounds_[isa] = std::make_unique<bench::MachineBounds>(session.isa());
    Result result;
    result.test = test;
    result.threads = session.threads();
    result.sequences = sequences;
    result.depth = depth;
    result.tokens = tokens;
    result.peak = matrices_.blocks ? bounds_[isa]->int8_gops(session.threads())
                                   : bounds_[isa]->f32_gflops(session.threads());
    return result;
  }
  std::vector<Token> text(int sequence, int from, int count) const {
    std::vector<Token> tokens(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      tokens[static_cast<std::size_t>(i)] = token_at(sequence, from + i, model_.vocab());
    }
    return tokens;
  }
  void extend(AnySession& session, SeqId seq, int sequence, int depth) const {
    const int now = session.length(seq);
    if (depth > now) {
      const std::vector<Token> tokens = text(sequence, now, depth - now);
      prefill(session, seq, std::span(tokens), {});
    }
  }
  // Copies of the first sequence where the cache can, else others of that length.
  void multiply(AnySession& session, std::vector<SeqId>& seqs, int sequences, int depth) {
    while (forks_ && seqs.size() > 1) {
      session.close(seqs.back());
      seqs.pop_back();
    }
    for (int i = 1; i < sequences; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (forks_) {
        try {
          seqs.push_back(session.fork(seqs[0]));
          continue;
        } catch (const RequestError&) {
          forks_ = false;  // a ring
        }
      }
      if (at == seqs.size()) seqs.push_back(session.open());
      extend(session, seqs[at], i, depth);
    }
  }
  void decode(AnySession& session, std::span<const SeqId> seqs, int depth) {
    const std::size_t n = seqs.size();
    const std::vector<int> counts(n, 1);
    std::vector<int> want(n);
    for (std::size_t i = 0; i < n; ++i) want[i] = static_cast<int>(i);
    std::vector<Token> tokens(n);
    logits_.resize(n * static_cast<std::size_t>(model_.vocab()));
    for (int step = 0; step < o_.steps; ++step) {
      for (std::size_t i = 0; i < n; ++i) {
        tokens[i] = token_at(static_cast<int>(i), depth + step, model_.vocab());
      }
      session.forward({.seqs = seqs,
                       .counts = counts,
                       .tokens = tokens,
                       .positions = {},
                       .parents = {},
                       .want = want},
                      matrix(logits_.data(), static_cast<Dim>(n), model_.vocab()));
    }
  }
  template <class Run, class Reset>
  void repeat(Result& result, int tokens, Run run, Reset reset) {
    for (int i = 0; i <= o_.runs; ++i) {
      const double start = bench::now(false);
      run();
      const double seconds = bench::now(false) - start;
      if (i > 0) result.rates.push_back(tokens / seconds);
      reset();
    }
    results_.push_back(result);
    if (!o_.json) print(result);
  }
  static void print(const Result& r) {
    const auto [low, high] = std::minmax_element(r.rates.begin(), r.rates.end());
    std::printf("%-8s %7d %5d %6d %6d %10.1f %10.1f %10.1f", r.test, r.threads, r.sequences,
                r.depth, r.tokens, r.rate(), *low, *high);
    if (r.bytes > 0) {
      std::printf(" %9.2f %7.2f %4.0f %%", r.bytes * 1e-6, r.gbps(),
                  100e9 * r.gbps() / r.bandwidth);
    } else {
      std::printf(" %9s %7s %6s", "", "", "");
    }
    std::printf(" %8.1f %4.1f %% %10.1f %5.2f\n", r.gops(), 100 * r.gops() / r.peak, r.predicted,
                r.over_measured());
    std::fflush(stdout);
  }

  const Options& o_;
  const AnyModel& model_;
  const Matrices& matrices_;
  const cost::ModelSizes& sizes_;
  std::map<std::pair<int, Isa>, cost::Hardware> hosts_;
  int longest_ = 1;
  bool forks_ = true;
  std::unique_ptr<bench::MachineBounds> bounds_[isa_count];
  std::vector<float> logits_;
  std::vector<Result> results_;
};

void check_list(std::string_view name, const std::vector<int>& list, int low, int high) {
  for (const int n : list) {
    if (n >= low && n <= high) continue;
    fail<RequestError>(name, " must be ", low, " to ", high, ", it is ", n,
                       "; choose a value in this range");
  }
}

// Fills in what was not given and refuses what cannot be run.
void complete(Options& o, int trained) {
  constexpr int most = 1 << 24;
  if (o.threads.empty())
    o.threads = usable_cpus() > 1 ? std::vector{1, usable_cpus()} : std::vector{1};
  check_list("-t", o.threads, 1, ThreadTeam::most);
  check_list("-b", o.sequences, 1, 4096);
  check_list("-p", o.prompts, 1, most);
  check_list("-d", o.depths, 0, most);
  check_list("-n", {o.steps}, 0, most);
  check_list("-r", {o.runs}, 1, most);
  if (o.prompts.empty()) {
    for (const int length : {128, 512}) {
      if (trained == 0 || length <= trained) o.prompts.push_back(length);
    }
    if (o.prompts.empty()) o.prompts.push_back(trained);
  }
  const int needed = (std::max)(*std::max_element(o.prompts.begin(), o.prompts.end()),
                                *std::max_element(o.depths.begin(), o.depths.end()) + o.steps);
  if (trained > 0 && needed > trained) {
    fail<RequestError>(o.model,
                       ": -p, and -d and -n together, must be at most the model's context of ",
                       trained, " tokens, they are ", needed, "; choose smaller ones");
  }
}

void print_json(const Options& o, const TensorSource& file, const AnyModel& model, bool in_blocks,
                const std::vector<Result>& results) {
  bench::Json json;
  json.begin('{')
      .put("program", "tenon")
      .put("version",
           message(TENON_VERSION_MAJOR, ".", TENON_VERSION_MINOR, ".", TENON_VERSION_PATCH));
  json.put("cpu", bench::cpu_model()).put("isa", name_of(choose_isa()));
  json.put("model", o.model).put("architecture", file.metadata().text("general.architecture"));
  json.put("weight_bytes", model.bytes()).put("cache", o.cache);
  json.put("arithmetic", in_blocks ? "int8" : "f32").begin('[', "results");
  for (const Result& r : results) {
    json.begin('{').put("test", r.test).put("threads", r.threads).put("sequences", r.sequences);
    json.put("depth", r.depth).put("tokens", r.tokens).put("tokens_per_second", r.rate());
    json.begin('[', "runs");
    for (const double rate : r.rates) json.put({}, rate);
    json.end(']').put("gops", r.gops()).put("peak_gops", r.peak);
    json.put("share_of_peak", r.gops() / r.peak);
    json.put("predicted_tokens_per_second", r.predicted);
    json.put("predicted_over_measured", r.over_measured());
    if (r.bytes > 0) {
      json.put("bytes_per_step", std::floor(r.bytes)).put("gbps", r.gbps());
      json.put("read_gbps", r.bandwidth * 1e-9);
      json.put("share_of_read", 1e9 * r.gbps() / r.bandwidth);
    }
    json.end('}');
  }
  std::cout << json.end(']').end('}').text() << '\n';
}

void run(Options& o) {
  const auto checkpoint = open_checkpoint(o.model);
  const TensorSource& file = *checkpoint;
  ThreadTeam loaders;
  const AnyModel model = zoo::All::load(file, loaders);
  const Matrices matrices = read_matrices(file);
  complete(o, model.trained_context());
  static_cast<void>(model.cache_bytes({}, o.cache));  // refuses a format there is not
  if (!o.json) {
    std::printf("%s: %s, weights %.2f MB, cache %s, on %s, %s\n", o.model.c_str(),
                file.metadata().text("general.architecture").c_str(),
                static_cast<double>(model.bytes()) * 1e-6, o.cache.c_str(),
                bench::cpu_model().c_str(), std::string(name_of(choose_isa())).c_str());
    std::printf("%-8s %7s %5s %6s %6s %10s %10s %10s %9s %7s %6s %8s %6s %10s %5s\n", "test",
                "threads", "seqs", "depth", "tokens", "tokens/s", "lowest", "highest", "MB/step",
                "GB/s", "bound", "GOP/s", "peak", "predicted", "times");
  }
  const cost::ModelSizes sizes = sizes_of_file(file, o.cache);
  Bench bench(o, model, matrices, sizes);
  for (const int threads : o.threads) {
    ThreadTeam team(threads);
    bench.prefill_all(team);
    if (o.steps == 0) continue;
    for (const int sequences : o.sequences) bench.decode_all(team, sequences);
  }
  if (o.json) print_json(o, file, model, matrices.blocks, bench.results());
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Prefill and decode speed of a model.", "bench_model");
  app.add_option("MODEL", o.model, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("-p", o.prompts, "lengths of prompts [128,512, as far as the context goes]")
      ->delimiter(',');
  app.add_option("-n", o.steps, "decode steps of a run; 0: none are timed")->capture_default_str();
  app.add_option("-b", o.sequences, "sequences decoded at once")->delimiter(',');
  app.add_option("-t", o.threads, "numbers of threads [1 and all]")->delimiter(',');
  app.add_option("-d", o.depths, "tokens a sequence holds before it is decoded")->delimiter(',');
  app.add_option("-r", o.runs, "runs of which the median is taken")->capture_default_str();
  app.add_option("--cache", o.cache, "format of cached rows, or of keys/values")
      ->capture_default_str();
  app.add_flag("--json", o.json, "print JSON");
  return run_program(app, argc, argv, [&] { run(o); });
}
