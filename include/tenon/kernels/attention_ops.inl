#pragma once
#include <cstring>
#include <limits>

#include "attention_ops.hpp"
#include "row_ops.inl"

#define TENON_LEAF_FILE "attention_row_leaves.inl"
#include "for_each_isa.inl"
#define TENON_LEAF_FILE "attention_leaves.inl"
#include "for_each_isa.inl"

namespace tenon::inline TENON_ABI {

TENON_INLINE const AttentionOps& attention_ops(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return avx512::attention_ops;
  if (isa == Isa::avx2) return avx2::attention_ops;
#elif defined(__aarch64__)
  if (isa >= Isa::neon) return neon::attention_ops;
#endif
  static_cast<void>(isa);
  return scalar::attention_ops;
}

}  // namespace tenon::inline TENON_ABI
