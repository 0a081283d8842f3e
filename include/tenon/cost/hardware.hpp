#pragma once
// What machines can do: peak arithmetic, memory bandwidth, memory. Dense peaks of the makers' data
// sheets, without sparsity.
#include <string_view>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI::cost {

// What products are computed in, whatever weights are stored in.
enum class Arithmetic { f32, bf16, fp8, int8 };

// FLOPs (or integer operations) per second, bytes per second and bytes, of one chip; 0: it cannot.
struct Hardware {
  std::string_view name;
  double f32 = 0, bf16 = 0, fp8 = 0, int8 = 0;
  double bandwidth = 0, memory = 0;
  double host_link = 32e9;  // bytes per second to the memory that cold sequences are moved to

  constexpr double flops(Arithmetic in) const {
    switch (in) {
      case Arithmetic::f32:
        return f32;
      case Arithmetic::bf16:
        return bf16;
      case Arithmetic::fp8:
        return fp8;
      case Arithmetic::int8:
        return int8;
    }
    return 0;
  }
  // FLOPs per byte above which an operation is bound by arithmetic.
  constexpr double balance(Arithmetic in = Arithmetic::bf16) const { return flops(in) / bandwidth; }
};

// Several chips as one: everything `n` times, communication not counted.
constexpr Hardware several(Hardware one, int n) {
  for (double* x :
       {&one.f32, &one.bf16, &one.fp8, &one.int8, &one.bandwidth, &one.memory, &one.host_link}) {
    *x *= n;
  }
  return one;
}

inline constexpr double gib = 1073741824.0;

// Presets are types, so that they can be named in static_assert(fits<Laptop16G>(...)).
struct A100 {
  static constexpr Hardware hardware{"A100", 19.5e12, 312e12, 0, 624e12, 2.039e12, 80e9};
};
struct H100 {
  static constexpr Hardware hardware{"H100", 67e12, 989e12, 1979e12, 1979e12, 3.35e12, 80e9, 64e9};
};
struct H200 {
  static constexpr Hardware hardware{"H200", 67e12, 989e12, 1979e12, 1979e12, 4.8e12, 141e9, 64e9};
};
struct TpuV5e {
  static constexpr Hardware hardware{"v5e", 0, 1.97e14, 0, 3.94e14, 8.2e11, 16 * gib};
};
// Eight cores of 3 GHz with AVX2 (32 FLOPs a cycle, four times as many on bytes) and two channels
// of DDR5-5600. Half a GiB for every four is left to the system.
template <int Gib>
struct LaptopOf {
  static constexpr Hardware hardware{"laptop", 768e9, 768e9, 0, 3072e9, 89.6e9, Gib* gib * 0.875};
};
using Laptop8G = LaptopOf<8>;
using Laptop16G = LaptopOf<16>;
using Laptop32G = LaptopOf<32>;

inline constexpr std::string_view hardware_names =
    "a100, h100, h200, v5e, laptop8g, laptop16g, laptop32g";

// The machine of one of these names. RequestError when there is none.
constexpr Hardware hardware_named(std::string_view name) {
  if (name == "a100") return A100::hardware;
  if (name == "h100") return H100::hardware;
  if (name == "h200") return H200::hardware;
  if (name == "v5e") return TpuV5e::hardware;
  if (name == "laptop8g") return Laptop8G::hardware;
  if (name == "laptop16g") return Laptop16G::hardware;
  if (name == "laptop32g") return Laptop32G::hardware;
  fail<RequestError>("the hardware must be one of ", hardware_names, ", it is \"", printable(name),
                     "\"; name one of these");
}

}  // namespace tenon::inline TENON_ABI::cost
