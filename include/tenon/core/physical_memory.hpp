#pragma once
// How much memory this machine has.
#include <cstddef>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

// Bytes; 0 where the system does not say. Limits of a control group are not looked at.
std::size_t physical_memory();

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "physical_memory.inl"
#endif
