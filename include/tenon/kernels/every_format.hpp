#pragma once
// The kernels of linear layers for every number format, as templates. linear.hpp includes this; in
// a program that links tenon::compiled it does not, so one with a number format of its own must.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "linear.hpp"

#define TENON_LEAF_FILE "super_block_leaves.inl"
#include "for_each_isa.inl"
#define TENON_LEAF_FILE "block_leaves.inl"
#include "for_each_isa.inl"
#define TENON_LEAF_FILE "linear_leaves.inl"
#include "for_each_isa.inl"
#define TENON_LEAF_FILE "int8_leaves.inl"
#include "for_each_isa.inl"

#if defined(__x86_64__)
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
namespace tenon::inline TENON_ABI::avx512vnni {
#define TENON_LEAF TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni")
#include "int8_leaves.inl"
#undef TENON_LEAF
}  // namespace tenon::inline TENON_ABI::avx512vnni
#include "amx_leaves.inl"
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif defined(__aarch64__)
#include "dotprod_leaves.inl"
#endif

namespace tenon::inline TENON_ABI {

struct EveryLinearLeaf {};

template <class F>
const LinearLeaf& linear_leaf(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::amx) return amx::linear_leaf_of<F>;
  if (isa == Isa::avx512vnni) return avx512vnni::linear_leaf_of<F>;
  if (isa == Isa::avx512) return avx512::linear_leaf_of<F>;
  if (isa == Isa::avx2) return avx2::linear_leaf_of<F>;
#elif defined(__aarch64__)
  if (isa == Isa::dotprod) return neon_dotprod::linear_leaf_of<F>;
  if (isa == Isa::neon) return neon::linear_leaf_of<F>;
#endif
  static_cast<void>(isa);
  return scalar::linear_leaf_of<F>;
}

}  // namespace tenon::inline TENON_ABI
