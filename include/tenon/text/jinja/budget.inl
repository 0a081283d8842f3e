#pragma once
#include "../../core/error.hpp"
#include "budget.hpp"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE void Budget::exceeded(std::string_view what, std::size_t most) {
  throw ValueError{message("a rendering may take at most ", most, ' ', what, ", this takes more")};
}

TENON_INLINE void Budget::make_items(std::size_t count) {
  const std::size_t most = limits_.made_bytes;
  if (count > most / sizeof(Value)) exceeded("bytes of values", most);
  make(count * sizeof(Value));
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
