#pragma once
#include <array>
#include <cstdint>

#include "peak_loops.hpp"

#define TENON_LEAF_FILE "../cost/peak_leaves.inl"
#include "../kernels/for_each_isa.inl"
#define TENON_LEAF_FILE "../cost/peak_byte_leaves.inl"
#include "../kernels/for_each_isa.inl"

#if defined(__x86_64__)
namespace tenon::inline TENON_ABI::avx512vnni {
#define TENON_LEAF TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni")
#include "peak_byte_leaves.inl"
#undef TENON_LEAF
}  // namespace tenon::inline TENON_ABI::avx512vnni
#elif defined(__aarch64__)
namespace tenon::inline TENON_ABI::cost::detail {
// The instruction is spelled out as in kernels/dotprod_leaves.inl.
#if defined(__clang__)
__attribute__((target("dotprod")))
#else
TENON_TARGET("arch=armv8.2-a+dotprod")
#endif
inline float
byte_dots_dotprod(Dim rounds) {
  for (Dim i = 0; i < rounds; ++i) {
    __asm__ volatile(
        "sdot v16.4s, v0.16b, v1.16b\n\tsdot v17.4s, v0.16b, v1.16b\n\t"
        "sdot v18.4s, v0.16b, v1.16b\n\tsdot v19.4s, v0.16b, v1.16b\n\t"
        "sdot v20.4s, v0.16b, v1.16b\n\tsdot v21.4s, v0.16b, v1.16b\n\t"
        "sdot v22.4s, v0.16b, v1.16b\n\tsdot v23.4s, v0.16b, v1.16b\n\t"
        "sdot v24.4s, v0.16b, v1.16b\n\tsdot v25.4s, v0.16b, v1.16b\n\t"
        "sdot v26.4s, v0.16b, v1.16b\n\tsdot v27.4s, v0.16b, v1.16b"
        :
        :
        : "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27");
  }
  return static_cast<float>(rounds);
}
inline constexpr double dotprod_operations = 12 * 2.0 * 16;
}  // namespace tenon::inline TENON_ABI::cost::detail
#endif

namespace tenon::inline TENON_ABI::cost {

namespace detail {
template <float (*Dots)(const std::byte*, Dim), int Sums>
float on_ones(Dim rounds) {
  alignas(64) std::array<std::byte, 64 * (Sums + 1)> ones;
  ones.fill(std::byte{1});
  return Dots(ones.data(), rounds);
}
template <float (*Dots)(const std::byte*, Dim), int Sums>
inline constexpr ArithmeticLoop vector_loop{on_ones<Dots, Sums>, Sums * 2.0 * 64};

#if defined(__x86_64__) && defined(__linux__)
// A product of tiles multiplies [16, 64] bytes by [64, 16]; a round does six, which hides their
// latency. In assembly, so that no compiler flag or header is needed.
inline constexpr double tile_operations = 6 * 2.0 * 16 * 64 * 16;
TENON_TARGET("amx-tile,amx-int8") inline float tile_products(Dim rounds) {
  struct alignas(64) Shapes {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
  } shapes;
  for (int i = 0; i < 8; ++i) {
    shapes.row_bytes[i] = 64;
    shapes.rows[i] = 16;
  }
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  for (Dim i = 0; i < rounds; ++i) {
    __asm__ volatile(
        "tdpbusd %%tmm7, %%tmm6, %%tmm0\n\ttdpbusd %%tmm7, %%tmm6, %%tmm1\n\t"
        "tdpbusd %%tmm7, %%tmm6, %%tmm2\n\ttdpbusd %%tmm7, %%tmm6, %%tmm3\n\t"
        "tdpbusd %%tmm7, %%tmm6, %%tmm4\n\ttdpbusd %%tmm7, %%tmm6, %%tmm5"
        :
        :);
  }
  __asm__ volatile("tilerelease" : :);
  return static_cast<float>(rounds);
}
#endif
}  // namespace detail

TENON_INLINE ArithmeticLoop float_loop(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return {avx512::multiply_adds, 32.0 * avx512::accumulators};
  if (isa == Isa::avx2) return {avx2::multiply_adds, 32.0 * avx2::accumulators};
#elif defined(__aarch64__)
  if (isa >= Isa::neon) return {neon::multiply_adds, 32.0 * neon::accumulators};
#endif
  static_cast<void>(isa);
  return {scalar::multiply_adds, 32.0 * scalar::accumulators};
}

TENON_INLINE ArithmeticLoop byte_loop(Isa isa) {
#if defined(__x86_64__)
#if defined(__linux__)
  if (isa == Isa::amx) return {detail::tile_products, detail::tile_operations};
#endif
  if (isa >= Isa::avx512vnni) {
    return detail::vector_loop<avx512vnni::byte_dots, avx512vnni::byte_sums>;
  }
  if (isa == Isa::avx512) {
    return detail::vector_loop<avx512::byte_dots, avx512::byte_sums>;
  }
  if (isa == Isa::avx2) {
    return detail::vector_loop<avx2::byte_dots, avx2::byte_sums>;
  }
#elif defined(__aarch64__)
  if (isa == Isa::dotprod) return {detail::byte_dots_dotprod, detail::dotprod_operations};
  if (isa == Isa::neon) {
    return detail::vector_loop<neon::byte_dots, neon::byte_sums>;
  }
#endif
  static_cast<void>(isa);
  return detail::vector_loop<scalar::byte_dots, scalar::byte_sums>;
}

TENON_INLINE ReadLoop read_loop(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return avx512::read_floats;
  if (isa == Isa::avx2) return avx2::read_floats;
#elif defined(__aarch64__)
  if (isa >= Isa::neon) return neon::read_floats;
#endif
  static_cast<void>(isa);
  return scalar::read_floats;
}

}  // namespace tenon::inline TENON_ABI::cost
