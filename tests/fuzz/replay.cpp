// Runs one fuzz target over every file of a folder, without a fuzzer: what once broke stays mended.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "the one argument must be a folder of inputs, it is \"%s\"\n",
                 argc == 2 ? argv[1] : "");
    return 2;
  }
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);  // the last line names the input that crashed
    // Exactly as many bytes as there are, so that a sanitizer sees a read of one more.
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(entry.file_size()));
    std::ifstream file(entry.path(), std::ios::binary);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++inputs;
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
