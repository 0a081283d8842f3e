#pragma once
// Every format that weights are written in by its name, for programs that let their users choose.
#include <string>
#include <string_view>

#include "weight_format.hpp"

namespace tenon::inline TENON_ABI {

// One of StoredFormats by its name in any case of letters. RequestError lists them.
const WeightFormat& find_weight_format(std::string_view name);
// Their names, for messages and --help.
std::string weight_format_names();

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "named_formats.inl"
#endif
