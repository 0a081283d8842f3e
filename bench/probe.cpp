// The bounds of this machine, which benchmarks print their results against:
//   bench_probe [-t 1,2] [--footprint 1172] [--json]
// Every rate is given by the wall clock and by the threads' own processor time, the best of several
// tries (machine_bounds.hpp). On a quiet machine the two agree; a gap is other programs' work.
#include <cstdio>
#include <set>
#include <vector>

#include "../examples/command_line.hpp"
#include "json.hpp"
#include "machine.hpp"
#include "machine_bounds.hpp"
#include "tenon/core/cpu_count.hpp"

namespace {

using namespace tenon;

struct Options {
  std::vector<int> threads;
  std::vector<double> footprints;  // MB = 10^6 bytes
  bool json = false;
};

struct Footprint {
  std::string name;
  std::size_t bytes = 0;  // of all threads together
};

constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t most_bytes = std::size_t{8} << 30;

// Half of a cache that each core has for itself, a tenth of the shared one, and far more than that.
std::vector<Footprint> footprints(int threads, const Options& options) {
  const auto or_else = [](std::size_t known, std::size_t otherwise) {
    return known > 0 ? known : otherwise;
  };
  const auto cores = static_cast<std::size_t>(threads);
  const std::size_t l1 = or_else(bench::cache_bytes(1), 32 * kib);
  const std::size_t l2 = or_else(bench::cache_bytes(2), 1 * mib);
  const std::size_t l3 = or_else(bench::cache_bytes(3), 32 * mib);
  std::vector<Footprint> all{
      {"L1", l1 / 2 * cores},
      {"L2", l2 / 2 * cores},
      {"L3", (std::max)(l3 / 10, 2 * l2 * cores)},
      {"DRAM", (std::min)((std::max)(5 * l3, 1024 * mib), most_bytes)},
  };
  for (const double megabytes : options.footprints) {
    all.push_back({"given", static_cast<std::size_t>(megabytes * 1e6)});
  }
  return all;
}

struct Line {
  std::string what, isa, unit;
  int threads = 1;
  std::size_t bytes = 0;  // footprint of a read
  bench::Rate rate;
};

std::vector<Line> measure(const Options& options) {
  std::vector<Line> lines;
  const auto best = std::string(name_of(choose_isa()));
  bench::MachineBounds chosen;
  for (const int t : options.threads) {
    for (const Footprint& f : footprints(t, options)) {
      lines.push_back({"read " + f.name, best, "GB/s", t, f.bytes, chosen.read(t, f.bytes)});
    }
  }
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512vnni}) {
    if (!supported(isa)) continue;
    bench::MachineBounds bounds(isa);
    const std::string name(name_of(isa));
    for (const int t : options.threads) {
      // The one that has integers of its own has the floats of the one before.
      if (isa != Isa::avx512vnni)
        lines.push_back({"f32 fma", name, "GFLOP/s", t, 0, bounds.f32(t)});
      lines.push_back({"int8 dot", name, "GOP/s", t, 0, bounds.int8(t)});
    }
  }
  for (const int t : options.threads) {
    if (!supported(Isa::amx)) break;
    lines.push_back({"int8 tiles", "amx", "GOP/s", t, 0, chosen.int8_tiles(t)});
  }
  return lines;
}

void print_json(const std::vector<Line>& lines) {
  bench::Json json;
  json.begin('{').put("cpu", bench::cpu_model()).put("isa", name_of(choose_isa()));
  json.put("usable_cpus", usable_cpus()).put("amx_int8", supported(Isa::amx));
  json.begin('{', "cache_bytes");
  for (const int level : {1, 2, 3}) {
    json.put("L" + std::to_string(level), bench::cache_bytes(level));
  }
  json.end('}').begin('[', "bounds");
  for (const Line& line : lines) {
    json.begin('{').put("what", line.what).put("isa", line.isa).put("threads", line.threads);
    if (line.bytes > 0) json.put("bytes", line.bytes);
    json.put("unit", line.unit).put("wall", line.rate.wall).put("thread", line.rate.thread);
    json.end('}');
  }
  std::cout << json.end(']').end('}').text() << '\n';
}

void print_table(const std::vector<Line>& lines) {
  std::printf("CPU              %s\n", bench::cpu_model().c_str());
  std::printf("instruction set  %s%s\n", std::string(name_of(choose_isa())).c_str(),
              supported(Isa::amx) ? "; the machine also has int8 tiles (AMX)" : "");
  std::printf("usable CPUs      %d\n", usable_cpus());
  for (const int level : {1, 2, 3}) {
    std::printf("L%d               %zu KiB\n", level, bench::cache_bytes(level) / kib);
  }
  std::printf("\n%-11s %-11s %7s %12s %12s %12s\n", "bound", "set", "threads", "footprint",
              "wall clock", "thread time");
  for (const Line& line : lines) {
    const std::string footprint =
        line.bytes == 0 ? std::string() : std::to_string(line.bytes / kib) + " KiB";
    std::printf("%-11s %-11s %7d %12s %12.1f %12.1f %s\n", line.what.c_str(), line.isa.c_str(),
                line.threads, footprint.c_str(), line.rate.wall, line.rate.thread,
                line.unit.c_str());
  }
  std::printf(
      "\nFootprints are of all threads together, each reading its own part. Wall clock: from the "
      "first\nthread's start to the last one's end. Thread time: the processor time of the slowest "
      "thread, as\nif no other program ran.\n");
}

void run(Options& options) {
  if (options.threads.empty()) {
    std::set<int> counts{1, usable_cpus()};
    for (int t = 2; t < usable_cpus(); t *= 2) counts.insert(t);
    options.threads.assign(counts.begin(), counts.end());
  }
  for (const int t : options.threads) {
    if (t >= 1 && t <= 1024) continue;
    fail<RequestError>("-t must be numbers of threads from 1 to 1024, it has ", t,
                       "; choose some in this range");
  }
  for (const double megabytes : options.footprints) {
    if (megabytes >= 1 && megabytes * 1e6 <= static_cast<double>(most_bytes)) continue;
    fail<RequestError>("--footprint must be megabytes from 1 to ", most_bytes / 1000000,
                       ", it has ", megabytes, "; choose what the workload reads per step");
  }
  const std::vector<Line> lines = measure(options);
  options.json ? print_json(lines) : print_table(lines);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What this machine can do at most.", "bench_probe");
  app.add_option("-t", options.threads, "numbers of threads [1, 2, 4, ... all]")->delimiter(',');
  app.add_option("--footprint", options.footprints, "megabytes to read besides the usual ones")
      ->delimiter(',');
  app.add_flag("--json", options.json, "print JSON");
  return run_program(app, argc, argv, [&] { run(options); });
}
