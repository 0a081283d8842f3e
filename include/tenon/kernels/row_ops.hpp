#pragma once
// Operations on single rows of floats, chosen by instruction set: norm, rotation, activations,
// conversions. All instruction sets return the same bits.
#include <cstdint>

#include "../core/types.hpp"
#include "isa.hpp"

namespace tenon::inline TENON_ABI {

struct RowOps {
  void (*rms_norm)(const float* x, const float* gain, Dim n, float eps, float* y);
  void (*add_to)(const float* x, Dim n, float* y);
  void (*soft_cap)(float* x, Dim n, float cap);  // x = cap tanh(x / cap)
  void (*add_scaled)(const float* x, float scale, Dim n, float* y);
  void (*silu_gate)(float* gate, const float* up, Dim n);
  void (*gelu_gate)(float* gate, const float* up, Dim n);
  void (*clamped_swiglu_gate)(float* gate, const float* up, Dim n);
  void (*rotate_interleaved)(float* x, Dim heads, Dim head_dim, Dim rope_dim, const float* cosines,
                             const float* sines);
  void (*rotate_halves)(float* x, Dim heads, Dim head_dim, Dim rope_dim, const float* cosines,
                        const float* sines);
  void (*narrow_to_half)(const float* x, Dim n, std::uint16_t* y);
  void (*widen_half)(const std::uint16_t* x, Dim n, float* y);
  void (*widen_bytes)(const std::int8_t* x, Dim n, float scale, float* y);
  void (*widen_bf16)(const std::uint16_t* x, Dim n, float* y);
};

// The operations for an instruction set that this machine supports.
const RowOps& row_ops(Isa isa);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "row_ops.inl"
#endif
