#pragma once
// What machine this is: the processor's name and the sizes of its caches.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bench {

inline std::string cpu_model() {
#if defined(__x86_64__)
  std::uint32_t words[12] = {};
  bool known = true;
  for (unsigned i = 0; i < 3; ++i) {
    std::uint32_t* w = words + 4 * i;
    known = known && __get_cpuid(0x80000002u + i, w, w + 1, w + 2, w + 3) != 0;
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string name(text);
  while (!name.empty() && name.back() == ' ') name.pop_back();
  if (known && !name.empty()) return name.substr(name.find_first_not_of(' '));
#endif
  return "unknown";
}

// Bytes of the first CPU's data cache of that level, as the system reports them; 0: it does not.
// A virtual machine often reports the whole socket's last level.
inline std::size_t cache_bytes(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string at = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    int its_level = 0;
    std::string type;
    std::size_t size = 0;
    char unit = 0;
    std::ifstream(at + "level") >> its_level;
    std::ifstream(at + "type") >> type;
    if (its_level != level || type == "Instruction") continue;
    std::ifstream(at + "size") >> size >> unit;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
  }
  return 0;
}

}  // namespace bench
