#pragma once
// How many bytes a stored value takes.
#include <concepts>

#include "../core/exact.hpp"

namespace tenon::inline TENON_ABI::cost {

// `block` values take `bytes` bytes.
struct Element {
  Dim block = 1, bytes = 2;
  constexpr bool operator==(const Element&) const = default;

  // Of n values that fill blocks; a last partial block counts as whole.
  constexpr Dim bytes_of(Dim n) const { return exact_product((n + block - 1) / block, bytes); }
  constexpr double bytes_per_value() const {
    return static_cast<double>(bytes) / static_cast<double>(block);
  }
  constexpr double bits_per_value() const { return 8 * bytes_per_value(); }
};

namespace elements {
inline constexpr Element f32{1, 4}, f16{1, 2}, bf16{1, 2}, fp8{1, 1}, int8{1, 1}, int4{2, 1};
}

// The element of a format of quant/: element_of<Q4_K>().bits_per_value() == 4.5.
template <class F>
constexpr Element element_of() {
  return {F::block, static_cast<Dim>(F::block_bytes)};
}

}  // namespace tenon::inline TENON_ABI::cost
