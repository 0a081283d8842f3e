#pragma once
#include <cmath>

#include "../quant/half.hpp"
#include "row_ops.hpp"

#define TENON_LEAF_FILE "row_leaves.inl"
#include "for_each_isa.inl"

namespace tenon::inline TENON_ABI {

TENON_INLINE const RowOps& row_ops(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return avx512::row_ops;
  if (isa == Isa::avx2) return avx2::row_ops;
#elif defined(__aarch64__)
  if (isa >= Isa::neon) return neon::row_ops;
#endif
  static_cast<void>(isa);
  return scalar::row_ops;
}

}  // namespace tenon::inline TENON_ABI
