// Hostile JSON documents. Reading one may end in a LoadError and nothing else; what was read and
// written again is the same document.
#include <tenon/core/error.hpp>
#include <tenon/core/json_value.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  try {
    const JsonValue value =
        JsonValue::parse({reinterpret_cast<const char*>(data), size}, "the input");
    for (const int spaces : {0, 2}) {
      if (JsonValue::parse(value.dump(spaces), "what was written") != value) std::abort();
    }
  } catch (const LoadError&) {}
  return 0;
}
