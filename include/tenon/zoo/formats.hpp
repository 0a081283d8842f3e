#pragma once
// The formats that the families of the zoo take unless told otherwise.
#include "../quant/any_of.hpp"
#include "../quant/fp8.hpp"
#include "../quant/gguf_formats.hpp"

namespace tenon::inline TENON_ABI::zoo {

// Element formats of a cache; the first is the default.
using CacheFormats = AnyOf<F16, F32, Q8_0, Bf16, Q4_0, Fp8E4M3, Fp8E5M2>;
using WeightFormats = GgufFormats;

}  // namespace tenon::inline TENON_ABI::zoo
