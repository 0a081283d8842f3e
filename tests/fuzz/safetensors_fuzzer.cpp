// Hostile safetensors bytes: a LoadError, or tensors whose bytes lie in the file and that survive
// being written and read again.
#include <tenon/io/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace tenon;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

std::string written(const SafeTensors& tensors) {
  std::ostringstream out;
  write_safetensors(out, tensors.tensors(), tensors.metadata());
  return std::move(out).str();
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const SafeTensors read = SafeTensors::from_bytes(bytes_of(text));
    std::size_t total = 0, sum = 0;
    for (const SafeTensor& tensor : read.tensors()) {
      require(read.find(tensor.name) == &tensor, "a tensor is found by its name");
      for (const std::byte b : tensor.data) sum += std::to_integer<std::size_t>(b);
      total += tensor.data.size();
    }
    require(total <= size && sum <= 255 * size, "tensors lie in the file");
    const std::string once = written(read);
    const SafeTensors again = SafeTensors::from_bytes(bytes_of(once));
    require(again.tensors().size() == read.tensors().size(), "as many tensors are read again");
    for (const SafeTensor& tensor : read.tensors()) {
      const SafeTensor* found = again.find(tensor.name);
      require(found != nullptr && found->shape == tensor.shape && found->type == tensor.type &&
                  found->data.size() == tensor.data.size(),
              "a tensor is read as it was written");
    }
    require(written(again) == once, "writing has one form");
  } catch (const LoadError&) {}
  return 0;
}
