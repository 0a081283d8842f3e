#pragma once
// A format for weights that is chosen at run time.
#include <cstddef>
#include <string_view>

#include "format.hpp"

namespace tenon::inline TENON_ABI {

// What there is to know of a Format to encode in it. A program that names formats by their types
// (&weight_format<Q8_0>) compiles those and no others; find_weight_format() of named_formats.hpp
// knows all of GGUF's.
struct WeightFormat {
  std::string_view name;
  int ggml_type;
  Dim block;  // values
  std::size_t block_bytes;
  void (*encode)(const float* values, Dim n, std::byte* to);
};

template <Format F>
inline constexpr WeightFormat weight_format{
    F::name, F::ggml_type, F::block, F::block_bytes,
    [](const float* values, Dim n, std::byte* to) { F::encode(values, n, to); }};

}  // namespace tenon::inline TENON_ABI
