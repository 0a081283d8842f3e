#pragma once
// The numbers by which GGUF metadata ("general.file_type") say how most matrices are stored, as
// llama.cpp counts them (llama_ftype).
#include <cstdint>
#include <string_view>

#include "../core/abi.hpp"

namespace tenon::inline TENON_ABI {

// A mixture of formats or a plain one: how llama-quantize calls it (in small letters), the format
// that most matrices have, and the number.
struct GgufFileType {
  std::string_view name, format;
  std::uint32_t number;
};

// Those that can be written.
inline constexpr GgufFileType gguf_file_types[] = {
    {"f32", "f32", 0},        {"f16", "f16", 1},        {"bf16", "bf16", 32},
    {"q8_0", "q8_0", 7},      {"q6_k", "q6_K", 18},     {"q5_k_m", "q5_K", 17},
    {"q5_k_s", "q5_K", 16},   {"q5_k", "q5_K", 17},     {"q5_1", "q5_1", 9},
    {"q5_0", "q5_0", 8},      {"q4_k_m", "q4_K", 15},   {"q4_k_s", "q4_K", 14},
    {"q4_k", "q4_K", 15},     {"q4_1", "q4_1", 3},      {"q4_0", "q4_0", 2},
    {"iq4_nl", "iq4_nl", 25}, {"iq4_xs", "iq4_xs", 30}, {"mxfp4", "mxfp4", 38},
    {"nvfp4", "nvfp4", 39},   {"q3_k_l", "q3_K", 13},   {"q3_k_m", "q3_K", 12},
    {"q3_k_s", "q3_K", 11},   {"q3_k", "q3_K", 12},     {"iq3_s", "iq3_s", 26},
    {"q2_k", "q2_K", 10}};

// The number of a file whose matrices are all in `format`: of several mixtures the
// smallest, "_s". 0: the format has none.
constexpr std::uint32_t gguf_file_type(std::string_view format) {
  const GgufFileType* found = nullptr;
  for (const GgufFileType& type : gguf_file_types) {
    if (type.format != format) continue;
    if (found == nullptr || type.name.ends_with("_s")) found = &type;
  }
  return found == nullptr ? 0 : found->number;
}

}  // namespace tenon::inline TENON_ABI
