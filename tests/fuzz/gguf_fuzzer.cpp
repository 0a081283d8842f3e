// Any bytes give a Gguf or a LoadError. An accepted file can be used to the last byte, and written
// again it is accepted with the same contents.
#include <tenon/io/gguf.hpp>
#include <tenon/io/gguf_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace tenon;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string written(const Gguf& gguf) {
  std::ostringstream out;
  write_gguf(out, gguf.metadata(), gguf.tensors());
  return std::move(out).str();
}

// Asks for every key as everything it might be; each answer is a value or a LoadError.
void ask(const Metadata& metadata, const std::string& key) {
  const auto attempt = [](auto&& call) {
    try {
      call();
    } catch (const LoadError&) {}
  };
  require(metadata.contains(key));
  attempt([&] { metadata.text(key); });
  attempt([&] { metadata.flag(key); });
  attempt([&] { metadata.integer(key); });
  attempt([&] { metadata.number(key); });
  attempt([&] { metadata.texts(key); });
  attempt([&] { metadata.integers(key); });
  attempt([&] { metadata.floats(key); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Gguf gguf = [&] {
    try {
      return Gguf::from_bytes(bytes_of(text));
    } catch (const LoadError&) {
      return Gguf::from_bytes(bytes_of({"GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24}));
    }
  }();
  for (const Metadata::Entry& entry : gguf.metadata().entries()) ask(gguf.metadata(), entry.key);
  std::size_t total = 0;
  std::size_t sum = 0;
  for (const TensorInfo& tensor : gguf.tensors()) {
    require(gguf.find(tensor.name) == &tensor);
    require(!tensor.shape.empty() && tensor.shape.size() <= 4 && !tensor.data.empty());
    for (const std::byte b : tensor.data) sum += std::to_integer<std::size_t>(b);
    total += tensor.data.size();
  }
  require(total <= size && sum <= 255 * size);

  const Gguf moved(std::move(gguf));
  const std::string once = written(moved);
  const Gguf again = Gguf::from_bytes(bytes_of(once));
  require(again.metadata().entries().size() == moved.metadata().entries().size());
  require(again.tensors().size() == moved.tensors().size());
  for (std::size_t i = 0; i < moved.tensors().size(); ++i) {
    const TensorInfo &before = moved.tensors()[i], &after = again.tensors()[i];
    require(before.name == after.name && before.shape == after.shape);
    require(before.ggml_type == after.ggml_type && before.data.size() == after.data.size());
    require(std::memcmp(before.data.data(), after.data.data(), before.data.size()) == 0);
  }
  require(written(again) == once);
  return 0;
}
