#pragma once
// Int8 tile products (AMX), timed and nothing else. In assembly, so that no compiler flag or header
// is needed.
#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "tenon/core/abi.hpp"

namespace bench::amx {

// A product of tiles multiplies [16, 64] bytes by [64, 16]; a round does six, which hides their
// latency.
inline constexpr double operations_per_round = 6 * 2.0 * 16 * 64 * 16;

// True when the processor has the instructions and the system lets this process use them.
inline bool usable() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool granted = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    if ((d >> 24 & 3) != 3) return false;  // tiles, and int8 in them
    constexpr long request_permission = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return granted;
#else
  return false;
#endif
}

// `rounds` rounds on this thread; usable() must be true.
#if defined(__x86_64__) && defined(__linux__)
TENON_TARGET("amx-tile,amx-int8") inline double multiply(long rounds) {
  struct alignas(64) Shapes {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
  } shapes;
  for (int i = 0; i < 8; ++i) {
    shapes.row_bytes[i] = 64;
    shapes.rows[i] = 16;
  }
  asm volatile("ldtilecfg %0" : : "m"(shapes));
  for (long i = 0; i < rounds; ++i) {
    asm volatile(
        "tdpbusd %%tmm7, %%tmm6, %%tmm0\n\ttdpbusd %%tmm7, %%tmm6, %%tmm1\n\t"
        "tdpbusd %%tmm7, %%tmm6, %%tmm2\n\ttdpbusd %%tmm7, %%tmm6, %%tmm3\n\t"
        "tdpbusd %%tmm7, %%tmm6, %%tmm4\n\ttdpbusd %%tmm7, %%tmm6, %%tmm5"
        :
        :);
  }
  asm volatile("tilerelease" : :);
  return static_cast<double>(rounds);
}
#else
inline double multiply(long) {
  return 0;
}
#endif

}  // namespace bench::amx
