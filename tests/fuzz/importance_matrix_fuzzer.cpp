// Any bytes give an importance matrix or a LoadError.
#include <tenon/core/error.hpp>
#include <tenon/io/importance_matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  try {
    const auto matrix = ImportanceMatrix::from_bytes(std::move(bytes));
    if (matrix.size() == 0) std::abort();
    for (const Dim columns : {1, 2, 4}) {
      try {
        for (const float w : matrix.find("x", 1, columns, 0)) {
          if (!(w > 0 && w < 1e30f)) std::abort();
        }
      } catch (const LoadError&) {
        continue;  // it has another number of columns
      }
    }
  } catch (const LoadError&) {
    return 0;
  }
  return 0;
}
