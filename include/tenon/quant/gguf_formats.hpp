#pragma once
// The number formats of GGUF that tenon computes with.
#include "any_of.hpp"
#include "blocks.hpp"
#include "dense.hpp"
#include "five_bits.hpp"
#include "iq3_s.hpp"
#include "iq4_nl.hpp"
#include "iq4_xs.hpp"
#include "k_quants.hpp"
#include "mxfp4.hpp"
#include "nvfp4.hpp"
#include "q8_sums.hpp"

namespace tenon::inline TENON_ABI {

// Those that weights are written in.
using StoredFormats = AnyOf<F32, F16, Bf16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K,
                            Q6_K, IQ4_NL, Mxfp4, IQ4_XS, Nvfp4, IQ3_S>;

// Each can be read from a file and multiplied with. Activations become the last two.
using GgufFormats = AnyOf<F32, F16, Bf16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K,
                          Q6_K, IQ4_NL, Mxfp4, IQ4_XS, Nvfp4, IQ3_S, Q8_1, Q8_K>;

}  // namespace tenon::inline TENON_ABI
