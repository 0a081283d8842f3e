// What the process of `generate` holds at its peak: the file once, packed, and the cache; never the
// mapped file beside the packed weights.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "catch.hpp"
#include "tenon/core/cpu_count.hpp"

namespace {

// Runs a program to its end; its peak resident bytes, 0 when it failed.
std::size_t peak_of(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& part : command) arguments.push_back(part.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::freopen("/dev/null", "w", stdout);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage used {};
  if (::wait4(child, &status, 0, &used) != child || status != 0) return 0;
  return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

}  // namespace

TEST_CASE("a 100 MB model is held once", "[memory]") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tenon_peak_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "small.gguf").string();
  REQUIRE(peak_of({TENON_SYNTH, file, "--shape", "small-50m", "--format", "f16"}) > 0);
  const auto bytes = std::filesystem::file_size(file);
  CHECK(bytes > 90'000'000);
  constexpr std::size_t context = 512;
  constexpr std::size_t cache = context * 2 * 7 * 256 * 2;  // rows, planes, layers, values, bytes
  const std::size_t peak =
      peak_of({TENON_GENERATE, file, "--max-tokens", "8", "--ctx", "512", "--cache", "f16"});
  const std::size_t quantized_peak = peak_of({TENON_GENERATE, file, "--max-tokens", "8", "--ctx",
                                              "512", "--cache", "f16", "--quantize", "q8_0"});
  std::filesystem::remove_all(folder);
  const std::size_t quantized = bytes / 64 * 34;  // 32 values: 34 bytes instead of 64
  INFO("quantized while loading " << quantized << ", peak " << quantized_peak);
  CHECK(quantized_peak > quantized);
  // A fault may bring a huge page of the file, and the part that a thread packs may lie on two.
  const std::size_t faults = static_cast<std::size_t>(tenon::usable_cpus()) * 2 * (2 << 20);
  constexpr std::size_t program = 8'000'000;  // itself, its vocabulary and panels of rows
  CHECK(static_cast<double>(quantized_peak) <
        1.2 * static_cast<double>(quantized) + static_cast<double>(cache + program + faults));
  INFO("file " << bytes << ", cache " << cache << ", peak " << peak);
  CHECK(peak > bytes);
  CHECK(static_cast<double>(peak) <
        1.15 * static_cast<double>(bytes + cache) + static_cast<double>(faults));
}
