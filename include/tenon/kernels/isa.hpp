#pragma once
// Which instruction set the leaves run on: the best this machine has, or the one TENON_ISA names.
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cstdlib>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

// Those of Arm, then those of x86, each in ascending order: one includes the ones before it of its
// own architecture.
enum class Isa { scalar, neon, dotprod, avx2, avx512, avx512vnni, amx };
inline constexpr int isa_count = 7;

constexpr std::string_view name_of(Isa isa) {
  constexpr std::string_view names[] = {"scalar", "neon",       "dotprod", "avx2",
                                        "avx512", "avx512vnni", "amx"};
  return names[static_cast<int>(isa)];
}

// All that this architecture knows, in ascending order; a machine may support fewer.
#if defined(__x86_64__)
inline constexpr Isa known_isas[] = {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512vnni,
                                     Isa::amx};
#elif defined(__aarch64__)
inline constexpr Isa known_isas[] = {Isa::scalar, Isa::neon, Isa::dotprod};
#else
inline constexpr Isa known_isas[] = {Isa::scalar};
#endif

namespace detail {
// Whether there is a matrix unit for int8 that the system lets this process use; Linux wants to be
// asked once, because a thread that uses it has eight more kilobytes to save.
inline bool may_use_amx() {
#if defined(__x86_64__) && defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long request_permission = 0x1023, tile_data = 18;
  static const bool granted = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool present = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & 3) == 3;
    return present && ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return granted;
#else
  return false;
#endif
}
#if defined(__aarch64__)
// Whether there are the instructions of FEAT_DotProd.
inline bool has_dotprod() {
#if defined(__linux__)
  return (::getauxval(AT_HWCAP) >> 20 & 1) != 0;  // HWCAP_ASIMDDP
#elif defined(__ARM_FEATURE_DOTPROD)
  return true;
#else
  return false;
#endif
}
#endif
}  // namespace detail

// True when this machine can run leaves of `isa`.
inline bool supported(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;  // clang 14 has no name for F16C
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  const bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  switch (isa) {
    case Isa::scalar:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::avx512vnni:
      return avx512 && __builtin_cpu_supports("avx512vnni");
    case Isa::amx:
      return avx512 && __builtin_cpu_supports("avx512vnni") && detail::may_use_amx();
    default:
      return false;
  }
#elif defined(__aarch64__)
  if (isa == Isa::dotprod) return detail::has_dotprod();
  return isa == Isa::scalar || isa == Isa::neon;
#else
  return isa == Isa::scalar;
#endif
}

// The instruction set to use, decided once per call: the environment variable TENON_ISA when set
// (RequestError when unknown or not supported here), otherwise the best supported.
inline Isa choose_isa() {
  const char* forced = std::getenv("TENON_ISA");
  std::string known;
  Isa best = Isa::scalar;
  for (const Isa isa : known_isas) {
    known.append(known.empty() ? "" : ", ").append(name_of(isa));
    if (!supported(isa)) continue;
    if (forced != nullptr && name_of(isa) == forced) return isa;
    best = isa;
  }
  if (forced == nullptr) return best;
  fail<RequestError>("TENON_ISA must be one of ", known, " that this machine supports, it is \"",
                     printable(forced), "\"; unset it to use the best");
}

}  // namespace tenon::inline TENON_ABI
