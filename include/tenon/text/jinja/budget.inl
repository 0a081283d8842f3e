#pragma once
#include "../../core/error.hpp"
#include "budget.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE void Budget::exceeded(std::string_view what, std::size_t most) {
  throw ValueError{message("a rendering may take at most ", most, ' ', what, ", this takes more")};
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
