#pragma once
#include <cstring>
#include <limits>

#include "activations.hpp"

#define TENON_LEAF_FILE "activation_leaves.inl"
#include "for_each_isa.inl"

namespace tenon::inline TENON_ABI {

TENON_INLINE QuantizeRow quantize_row(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return avx512::quantize_row;
  if (isa == Isa::avx2) return avx2::quantize_row;
#elif defined(__aarch64__)
  if (isa >= Isa::neon) return neon::quantize_row;
#endif
  static_cast<void>(isa);
  return scalar::quantize_row;
}

}  // namespace tenon::inline TENON_ABI
